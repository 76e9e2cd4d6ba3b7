// Letters that statsd lines give a meaning to, and control characters: a new line in a value that a client chose
// must not become a line of its own.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const unsafe = /[:|\u0000-\u001f\u007f]/g;
const ipv4Like = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Makes a domain, a level or a whole dotted key fit for the name of a statistic: `:`, `|` and control characters become
 * `_`, and so do the dots inside what looks like an IPv4 address. Other dots stay.
 */
export function sanitiseStatKey(key: string): string {
  return key.replace(unsafe, '_').replace(ipv4Like, (address) => address.replaceAll('.', '_'));
}

/** Joins a domain and its levels with dots, unsanitised. */
export function joinStatKey(domain: string, levels: readonly string[]): string {
  let key = domain;
  for (const level of levels) key += `.${level}`;
  return key;
}
