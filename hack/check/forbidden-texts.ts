import { findFragments } from './sentences.ts';

interface Rule {
  readonly pattern: RegExp;
  readonly reason: string;
  /** Paths that the rule applies to. */
  readonly only?: RegExp;
}

const prose = /\.(?:[cm]?ts|mjs|md|ya?ml|tpl|sh|html|txt)$|(?:^|\/)(?:Makefile|Dockerfile)$|^\.ci\/run$/;

/** See "Language" in CONTRIBUTING.md. Written so that this file does not match it. */
const bannedWords = [
  // The Unix user of that name is fine in quotes.
  '(?<!user |[\'"`])no[b]ody|some[b]ody|who[e]ver|wh[o]m|a[n]ew|a[m]idst|str[a]ngers?|r[o]oms?|h[o]uses?',
  'th[o]se that|what th[a]t takes|not to be h[a]d|in pl[a]ce of|for e[v]er',
  '(?:is|are|was|be) (?:t[o]ld|a[s]ked(?! for)|h[e]ard)',
].join('|');

const rules: readonly Rule[] = [
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
  {
    pattern: /(?<!reset-then-)reuse-values/,
    reason: 'helm upgrade without the defaults of the new chart: write --reset-then-reuse-values',
    only: /\.(?:md|txt|tpl|ya?ml|sh)$/,
  },
  { pattern: new RegExp(`\\b(?:${bannedWords})\\b`, 'i'), reason: 'not plain English', only: prose },
  {
    pattern: /\b\w*(?:[a-z]Deps|[Vv]erdicts?|[Cc]ontestants?|[a-z]Figures|[a-z]Traits|[a-z]Facts)\b/,
    reason: 'not a standard term',
    only: /\.ts$/,
  },
  {
    // Lines with a URL or a schema cannot be wrapped.
    pattern: /^(?!.*(?:https?:\/\/|@schema))\s*(?:\/\/|\/?\*|# ).{0,99}(?<=^.{100}).+$/,
    reason: 'a comment of more than 100 columns',
    only: /\.(?:ts|mjs|ya?ml|sh)$/,
  },
];

/** Recorded facts and generated code. */
const exempt = /(?:^|\/)(?:generated|testdata)\/|^CODE_OF_CONDUCT\.md$/;

/** Texts that must not be committed, as `path:line: reason: text`. */
export function findForbiddenTexts(path: string, text: string): string[] {
  const applicable = rules.filter(
    ({ only }) => only === undefined || (only.test(path) && !exempt.test(path)),
  );
  const found = text.split('\n').flatMap((line, index) =>
    applicable.flatMap(({ pattern, reason }) => {
      const match = pattern.exec(line)?.[0];
      return match === undefined ? [] : [`${path}:${index + 1}: ${reason}: ${match.trim()}`];
    }),
  );
  return path.endsWith('.ts') && !exempt.test(path) ? [...found, ...findFragments(path, text)] : found;
}
