// Measures how run time grows with the size of the input, independent of the speed of the machine.

/** Returns how much longer a run takes with twice the input: 2 for linear time, 4 for quadratic time. The best of three runs
    each, because the machine may be busy. */
export async function growth(run) {
  const best = async (size) => Math.min(await run(size), await run(size), await run(size));
  // Very short times are imprecise, so the baseline is at least 20 ms.
  return await best(60_000) / Math.max(await best(30_000), 20);
}
