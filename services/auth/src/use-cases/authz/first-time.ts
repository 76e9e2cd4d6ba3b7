/** Makes a function that tells whether a key is seen for the first time. It remembers the last `capacity` new keys. */
export function createFirstTime(capacity: number): (key: string) => boolean {
  const seen = new Set<string>();
  return (key) => {
    if (seen.has(key)) return false;
    const [oldest] = seen.size < capacity ? [] : seen;
    if (oldest !== undefined) seen.delete(oldest);
    seen.add(key);
    return true;
  };
}
