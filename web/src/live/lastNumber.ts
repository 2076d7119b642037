/** Where a list that is numbered from its beginning, perhaps with gaps, ends: few looks even if it is very long. */
export async function findLastNumber(isAfter: (number: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, 1024];
  while (await isAfter(high)) { low = high; high *= 4; }
  // Something is behind `low`, nothing is behind `high`.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isAfter(middle)) low = middle; else high = middle;
  }
  return high;
}
