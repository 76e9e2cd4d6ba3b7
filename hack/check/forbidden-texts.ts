/** The patterns are written so that this file does not match them. */
const forbidden: readonly { pattern: RegExp; reason: string; only?: RegExp }[] = [
  {
    pattern:
      /\bregistry\.(?:npmjs|yarnpkg|npmmirror)\b|\b(?:files\.)?python(?:hosted)\.org|\bpypi\.org|\bproxy\.golang\b/,
    reason: 'names a package registry; the machine decides where packages come from',
  },
  {
    // Home and work folders only: paths that exist on every machine are fine.
    pattern: /(?<![\w.~:/-])\/(?:work|root|Users|home)\/[\w.-]+/,
    reason: 'an absolute path of one machine',
  },
  {
    pattern: /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/,
    reason: 'a private key; make one in the test instead',
  },
  {
    pattern: /"resolved": "https?:/,
    reason: 'a lock file with the address of a registry: keep omit-lockfile-registry-resolved in .npmrc',
    only: /(?:^|\/)package-lock\.json$/,
  },
];

/** Texts that must not be committed, as `path:line: reason: text`. */
export function findForbiddenTexts(path: string, text: string): string[] {
  const rules = forbidden.filter(({ only }) => only === undefined || only.test(path));
  return text.split('\n').flatMap((line, index) =>
    rules.flatMap(({ pattern, reason }) => {
      const found = pattern.exec(line)?.[0];
      return found === undefined ? [] : [`${path}:${index + 1}: ${reason}: ${found}`];
    }),
  );
}
