/** Longest part of a text that is compared; the work grows with its square. */
const maxCompared = 32;

/** How many characters must be put in, left out or changed to make one text of the other, by their first 32. */
export function editDistance(a: string, b: string): number {
  const to = b.slice(0, maxCompared);
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= Math.min(a.length, maxCompared); row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const change = a.charCodeAt(row - 1) === to.charCodeAt(column - 1) ? 0 : 1;
      const [left = 0, over = 0, diagonal = 0] = [current[column - 1], above[column], above[column - 1]];
      current.push(Math.min(left + 1, over + 1, diagonal + change));
    }
    above = current;
  }
  return above.at(-1) ?? 0;
}
