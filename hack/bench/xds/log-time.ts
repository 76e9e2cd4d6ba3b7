/**
 * Finds when a service last logged `message`, in milliseconds of Unix time; undefined when it has not.
 *
 * @param log lines of JSON with the fields of the kit's logger; the first may be cut.
 */
export function lastLogTime(log: string, message: string): number | undefined {
  const line = log
    .split('\n')
    .findLast((candidate) => candidate.startsWith('{') && candidate.includes(`"@message":"${message}"`));
  const timestamp = /"@timestamp":"([^"]+)"/.exec(line ?? '')?.[1];
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}
