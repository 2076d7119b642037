/** Finds the end of a list that is numbered from its start, possibly with gaps, in few requests. */
export async function findLastNumber(isAfter: (number: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, 1024];
  while (await isAfter(high)) { low = high; high *= 4; }
  // There are entries after `low`, and none after `high`.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isAfter(middle)) low = middle; else high = middle;
  }
  return high;
}
