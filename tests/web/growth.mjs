// Whether something is quick, told apart from whether the machine is.

/** How much longer something takes with twice as much: twice where it looks at each sign once, four times where it looks back at
    all of them. The best of three each, for others work here too. */
export async function growth(run) {
  const best = async (size) => Math.min(await run(size), await run(size), await run(size));
  // What takes next to nothing is not measured well.
  return await best(60_000) / Math.max(await best(30_000), 20);
}
