import type { SessionView } from "../../api/instance.types";
import type { Branch } from "../../design/Tree.svelte";

/** Groups sessions under their owners. A session whose owner is not listed is a root. So is one in a cycle, which should not
    exist. */
export function sessionTree(sessions: SessionView[]): Branch<SessionView>[] {
  const branches = new Map(sessions.map((item) => [item.session_key, { id: item.session_key, item, children: [] } as Branch<SessionView>]));
  const isUnder = (key: string, above: string): boolean => {
    const seen = new Set<string>();
    for (let at: string | null | undefined = key; at && !seen.has(at); at = branches.get(at)?.item.owner_session_key) {
      if (at === above) return true;
      seen.add(at);
    }
    return false;
  };
  const roots: Branch<SessionView>[] = [];
  for (const branch of branches.values()) {
    const owner = branch.item.owner_session_key;
    const parent = owner ? branches.get(owner) : undefined;
    if (parent && owner && !isUnder(owner, branch.id)) parent.children.push(branch);
    else roots.push(branch);
  }
  return roots;
}
