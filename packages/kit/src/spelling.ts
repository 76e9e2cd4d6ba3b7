/** The known name with the fewest edits, ignoring case; `undefined` if none is within `reach`. */
export function closest(
  given: string,
  known: readonly string[],
  reach: (name: string) => number,
): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(given, name, reach(name));
    if (distance !== undefined && distance < (best?.distance ?? Infinity)) best = { name, distance };
  }
  return best?.name;
}

/**
 * The known name that `given` is most likely meant to be: one that differs in case and separators
 * only, or by one letter (two of long names). Short names are close to unrelated ones.
 */
export function meantName(given: string, known: readonly string[]): string | undefined {
  const plain = letters(given);
  const same = known.find((name) => letters(name) === plain);
  if (same !== undefined) return same;
  return closest(given, known, (name) => (name.length >= 8 ? 2 : name.length >= 4 ? 1 : 0));
}

function letters(name: string): string {
  return name.replaceAll(/[^\p{L}\p{N}]/gu, '').toLowerCase();
}

/** Levenshtein distance in upper case, or `undefined` when it is more than `most`. */
function editDistance(left: string, right: string, most: number): number | undefined {
  if (Math.abs(left.length - right.length) > most) return undefined;
  const target = [...right.toUpperCase()];
  let row = Array.from({ length: target.length + 1 }, (_, index) => index);
  for (const letter of left.toUpperCase()) {
    const next = [(row[0] ?? 0) + 1];
    for (const [index, other] of target.entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  const distance = row[target.length] ?? 0;
  return distance <= most ? distance : undefined;
}
