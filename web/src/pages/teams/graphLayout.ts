import type { TeamTaskView } from "../../api/instance.types";

/** Tasks in layers: first those without dependencies, then those that depend only on them, and so on. */
export interface GraphNode { task: TeamTaskView; x: number; y: number }
export interface GraphEdge { id: string; path: string; done: boolean }
export interface GraphLayout { nodes: GraphNode[]; edges: GraphEdge[]; width: number; height: number; hiddenCount: number }

export const NODE_SIZE = { width: 200, height: 56 };
const GAP = { x: 70, y: 18 };
/** More tasks are not readable. Open tasks come first. */
const MAX_TASKS = 150;

export function layOutTasks(all: TeamTaskView[]): GraphLayout {
  const linked = new Set(all.flatMap((task) => (task.depends_on.length ? [task.task_id, ...task.depends_on] : [])));
  const isOpen = (task: TeamTaskView) => task.status !== "completed";
  const tasks = all.filter((task) => linked.has(task.task_id)).sort((a, b) => Number(isOpen(b)) - Number(isOpen(a))).slice(0, MAX_TASKS);
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  const depths = new Map<number, number>();
  const depth = (id: number, above: number[] = []): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    const needs = (byId.get(id)?.depends_on ?? []).filter((one) => byId.has(one) && !above.includes(one));
    const found = needs.length ? 1 + Math.max(...needs.map((one) => depth(one, [...above, id]))) : 0;
    depths.set(id, found);
    return found;
  };
  const rows: number[] = [];
  const nodes = tasks.map((task): GraphNode => {
    const layer = depth(task.task_id);
    rows[layer] = (rows[layer] ?? 0) + 1;
    return { task, x: layer * (NODE_SIZE.width + GAP.x) + 8, y: (rows[layer] - 1) * (NODE_SIZE.height + GAP.y) + 8 };
  });
  const places = new Map(nodes.map((node) => [node.task.task_id, node]));
  const edges = nodes.flatMap((node) => node.task.depends_on.flatMap((id) => edge(places.get(id), node)));
  const most = Math.max(...rows.map((row) => row ?? 0), 1);
  return { nodes, edges, width: rows.length * (NODE_SIZE.width + GAP.x) - GAP.x + 16, height: most * (NODE_SIZE.height + GAP.y) + 8, hiddenCount: linked.size - tasks.length };
}

function edge(from: GraphNode | undefined, to: GraphNode): GraphEdge[] {
  if (!from) return [];
  const [x1, y1, x2, y2] = [from.x + NODE_SIZE.width, from.y + NODE_SIZE.height / 2, to.x, to.y + NODE_SIZE.height / 2];
  const bend = (x2 - x1) / 2;
  return [{ id: `${from.task.task_id} ${to.task.task_id}`, done: from.task.status === "completed", path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 6} ${y2}` }];
}
