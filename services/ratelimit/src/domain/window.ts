/** Start of the fixed window that holds `nowSeconds`, in Unix seconds. Windows are aligned to the epoch. */
export function windowStart(nowSeconds: number, unitSeconds: number): number {
  return nowSeconds - (nowSeconds % unitSeconds);
}

/** Whole seconds until the window ends: 1 to `unitSeconds`, never 0. */
export function secondsUntilReset(nowSeconds: number, unitSeconds: number): number {
  return unitSeconds - (nowSeconds % unitSeconds);
}
