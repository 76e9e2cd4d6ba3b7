/** A text that must not be committed, and why. Written so that this file does not contain what it looks for. */
const forbidden: readonly { pattern: RegExp; reason: string; only?: RegExp }[] = [
  {
    pattern:
      /\bregistry\.(?:npmjs|yarnpkg|npmmirror)\b|\b(?:files\.)?python(?:hosted)\.org|\bpypi\.org|\bproxy\.golang\b/,
    reason: 'names a package registry; the machine decides where packages come from',
  },
  {
    // A folder of some machine, not one that exists everywhere or that a setting defaults to.
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

/** Problems as `path:line: reason: text`, one for each line of the file that must not be committed. */
export function forbiddenTexts(path: string, text: string): string[] {
  const rules = forbidden.filter(({ only }) => only === undefined || only.test(path));
  return text.split('\n').flatMap((line, index) =>
    rules.flatMap(({ pattern, reason }) => {
      const found = pattern.exec(line)?.[0];
      return found === undefined ? [] : [`${path}:${index + 1}: ${reason}: ${found}`];
    }),
  );
}
