import { posix } from 'node:path';
import { findImports, type Import, isMember } from './find-imports.ts';
import { scanSource, type Token } from './scan-source.ts';

/** Where a file belongs: `services/ratelimit`, `packages/kit`, `proto`, `client-sdk`, `hack`, or '' for the root. */
type Room = string;

/** Packages without I/O, clock and randomness: what domain code may use at run time. */
const pureModules = /^@tollgate\/rules\/|^@tollgate\/kit\/(?:compare-text|duration|errors)$/;

/** Folders of a service that talk to the world. */
const adapterFolders = new Set([
  'backends',
  'surfaces',
  'rule-sources',
  'sinks',
  'store',
  'mail',
  'sms',
  'passwords',
  'dev',
  'providers',
  'resource-sources',
  'status-writers',
]);

/** Who puts a service together: app.ts for a server, cli for a command; settings are derived from the adapters' registries. */
const seesAdapters = /^(?:app\.ts|cli\/.*|settings\/.*)$/;

/** What would make domain code depend on more than its arguments. */
const impureNames = new Set([
  ...['process', 'console', 'performance', 'crypto', 'fetch', 'globalThis'],
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'],
]);
const impureMembers = new Set(['Date.now', 'Math.random']);

/** A file with what the rules ask of it. */
interface SourceFile {
  readonly path: string;
  readonly room: Room;
  /** Path below `src` of the room; '' outside of it. */
  readonly inSrc: string;
  readonly tokens: readonly Token[];
  readonly imports: readonly Import[];
}

/** A rule finds problems as [line, message]. */
type Rule = (file: SourceFile) => [number, string][];

/**
 * Problems of one TypeScript file as `path:line: message`. The rules are those of docs/architecture.md: which room
 * may import which, domain code is pure, only app.ts sees adapters, only main.ts and cli touch the process.
 */
export function importProblems(path: string, text: string): string[] {
  const tokens = scanSource(text);
  const room = roomOf(path);
  const inSrc = path.startsWith(`${room}/src/`) ? path.slice(room.length + '/src/'.length) : '';
  const file: SourceFile = { path, room, inSrc, tokens, imports: findImports(tokens) };
  return rules
    .flatMap((rule) => rule(file))
    .sort(([a], [b]) => a - b)
    .map(([line, message]) => `${path}:${line}: ${message}`);
}

const rules: readonly Rule[] = [
  roomsRule,
  testkitRule,
  domainImportsRule,
  domainNamesRule,
  adaptersRule,
  processRule,
];

function roomsRule({ path, room, inSrc, imports }: SourceFile): [number, string][] {
  return imports.flatMap(({ specifier, line }): [number, string][] => {
    const target = targetRoom(path, specifier);
    if (target === undefined || target === room || room === 'hack') return [];
    if (specifier.startsWith('.'))
      return [[line, `${specifier} leaves ${room}: import rooms by package name`]];
    return mayImport({ room, inSrc }, target) ? [] : [[line, `${room} must not import ${target}`]];
  });
}

function mayImport({ room, inSrc }: Pick<SourceFile, 'room' | 'inSrc'>, target: Room): boolean {
  // It is published alone; its tests are not.
  if (room === 'client-sdk') return target === 'packages/testkit' && inSrc === '';
  if (target === 'client-sdk') return room === 'services/auth';
  return target === 'proto' || target.startsWith('packages/');
}

/** Servers and clocks for tests have no place in what is shipped. */
function testkitRule({ room, inSrc, imports }: SourceFile): [number, string][] {
  if (inSrc === '' || room === 'packages/testkit') return [];
  return imports
    .filter(({ specifier }) => specifier.startsWith('@tollgate/testkit'))
    .map(({ line }) => [line, 'only tests and hack import @tollgate/testkit']);
}

function isDomain({ room, inSrc }: SourceFile): boolean {
  return (
    (room.startsWith('services/') && inSrc.startsWith('domain/')) ||
    (room === 'packages/rules' && inSrc !== '')
  );
}

function domainImportsRule(file: SourceFile): [number, string][] {
  if (file.room === 'packages/rules') return nodeImports(file);
  if (!isDomain(file)) return [];
  return file.imports.flatMap(({ specifier, typeOnly, line }): [number, string][] => {
    const target = srcTarget(file, specifier) ?? '';
    if (target.startsWith('domain/') || pureModules.test(specifier)) return [];
    if (typeOnly && (target.startsWith('ports/') || specifier.startsWith('@tollgate/'))) return [];
    return [
      [
        line,
        `domain code imports ${specifier}: only domain/, pure packages and types of ports and packages are allowed`,
      ],
    ];
  });
}

function nodeImports({ inSrc, imports }: SourceFile): [number, string][] {
  if (inSrc === '') return [];
  return imports
    .filter(({ specifier, typeOnly }) => specifier.startsWith('node:') && !typeOnly)
    .map(({ specifier, line }) => [line, `pure code imports ${specifier}`]);
}

function domainNamesRule(file: SourceFile): [number, string][] {
  if (!isDomain(file)) return [];
  const { tokens } = file;
  return tokens.flatMap(({ kind, text, line }, index): [number, string][] => {
    if (kind !== 'word' || isMember(tokens, index)) return [];
    const following = tokens.slice(index + 1, index + 4).map((token) => token.text);
    const member = `${text}.${following[1]}`;
    if (following[0] === '.' && impureMembers.has(member)) return [[line, `domain code uses ${member}`]];
    if (text === 'new' && following.join('') === 'Date()') return [[line, 'domain code uses new Date()']];
    return impureNames.has(text) && isValue(tokens, index) ? [[line, `domain code uses ${text}`]] : [];
  });
}

function adaptersRule(file: SourceFile): [number, string][] {
  const { room, inSrc, imports } = file;
  if (!room.startsWith('services/') || inSrc === '' || seesAdapters.test(inSrc)) return [];
  const ownFolder = inSrc.split('/')[0] ?? '';
  return imports.flatMap(({ specifier, typeOnly, line }): [number, string][] => {
    const folder = srcTarget(file, specifier)?.split('/')[0] ?? '';
    // Types tell who may be called, not who is: they bind nobody to an adapter at run time.
    const allowed = typeOnly || folder === ownFolder || !adapterFolders.has(folder);
    return allowed ? [] : [[line, `only app.ts imports adapters, such as ${specifier}`]];
  });
}

function processRule({ room, inSrc, tokens, imports }: SourceFile): [number, string][] {
  if (!room.startsWith('services/') || inSrc === '' || inSrc === 'main.ts' || inSrc.startsWith('cli/'))
    return [];
  const message = 'only main.ts and cli/ touch the process';
  return [
    ...imports
      .filter(({ specifier }) => specifier === 'node:process')
      .map(({ line }): [number, string] => [line, message]),
    ...tokens.flatMap(({ kind, text, line }, index): [number, string][] =>
      kind === 'word' && text === 'process' && !isMember(tokens, index) && isValue(tokens, index)
        ? [[line, message]]
        : [],
    ),
  ];
}

/** Is the word here a use of a variable, not a key (`{ process: 1 }`), a parameter or a method of that name? */
function isValue(tokens: readonly Token[], index: number): boolean {
  const before = tokens[index - 1]?.text ?? '';
  const after = tokens[index + 1]?.text ?? '';
  const namesMember = after === ':' || (after === '?' && tokens[index + 2]?.text === ':');
  return !(namesMember && /^[{,;(]$/.test(before));
}

/** The room that a specifier leads to; undefined for npm packages and builtins. */
function targetRoom(path: string, specifier: string): Room | undefined {
  if (specifier.startsWith('.')) return roomOf(posix.join(posix.dirname(path), specifier));
  const name = /^@tollgate\/([^/]+)/.exec(specifier)?.[1];
  if (name === undefined) return undefined;
  if (['embedded-postgres', 'grpc-server', 'kit', 'rules', 'testkit'].includes(name))
    return `packages/${name}`;
  if (name === 'oauth2-client') return 'client-sdk';
  return name === 'proto' ? name : `services/${name}`;
}

/** Path below the file's own `src` that a relative specifier leads to. */
function srcTarget({ path, room }: SourceFile, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const target = posix.join(posix.dirname(path), specifier);
  return target.startsWith(`${room}/src/`) ? target.slice(room.length + '/src/'.length) : undefined;
}

function roomOf(path: string): Room {
  const [first = '', second = ''] = path.split('/');
  if (first === 'services' || first === 'packages') return `${first}/${second}`;
  return ['proto', 'client-sdk', 'hack'].includes(first) ? first : '';
}
