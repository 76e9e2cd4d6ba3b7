import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFlags, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { runInSlices } from '@tollgate/kit/steps';
import { compareText } from '@tollgate/kit/text';
import { type FolderTexts, readTextFiles, type TextFile } from '@tollgate/kit/text-files';
import { resourceKind } from '@tollgate/rules/resource-shape';
import { parse, splitDocuments, type YamlDocument } from '@tollgate/yaml/documents';
import type { Verdict } from '../catalog/accepted.ts';
import { createCatalog } from '../catalog/catalog.ts';
import { encodeRules, hashContent } from '../catalog/snapshot.ts';
import { problemsOfObject } from '../catalog/validate.ts';
import { createFolderContents, manifestFiles } from '../sources/folder.ts';
import type { ConfigObject, SourceProblem } from '../sources/source.ts';

/** Where something is in a file. */
export interface FilePlace {
  readonly source: string;
  readonly line: number;
  readonly column: number;
}

/** `a.yaml#2.items[0]`: file, number of the document, item of a list. */
const labelForm = /^(?<source>.*)#(?<number>\d+)(?:\.(?<item>items\[\d+\]))?$/s;

/**
 * Makes the function from the label of a manifest and a JSON path in it to the place: of that field, or of what comes
 * nearest when it is missing or behind an alias. Undefined for what is no label. The text of each file is read again when
 * it is first asked for, which saves keeping places nobody asks for.
 */
export function createManifestPlaces(
  files: readonly TextFile[],
): (label: string, field: string) => FilePlace | undefined {
  const texts = new Map(files.map(({ source, text }) => [source, text]));
  const known = new Map<string, readonly YamlDocument[]>();

  function documentsOf(source: string): readonly YamlDocument[] {
    const documents = known.get(source) ?? numberDocuments(texts.get(source) ?? '');
    known.set(source, documents);
    return documents;
  }

  return (label, field) => {
    const { source = '', number = '', item = '' } = labelForm.exec(label)?.groups ?? {};
    const document = documentsOf(source)[Number(number) - 1];
    if (document === undefined) return undefined;
    const path = item !== '' && field !== '' ? `${item}.${field}` : `${item}${field}`;
    return { source, ...document.positionOf(path) };
  };
}

/** The documents that labels count: all but the empty ones. */
function numberDocuments(text: string): readonly YamlDocument[] {
  return splitDocuments(text).flatMap((part) => {
    const parsed = parse(part);
    return parsed.ok ? parsed.documents.filter(({ value }) => value !== null && value !== undefined) : [];
  });
}

/** One thing that is wrong. */
interface Finding {
  /** The file. */
  readonly source: string;
  /** From 1; absent when the whole file is meant. */
  readonly line?: number;
  readonly column?: number;
  /** JSON path in the manifest. */
  readonly field?: string;
  readonly message: string;
}

/** What was found in a folder. */
interface Checked {
  readonly texts: FolderTexts;
  /** What no object could be taken from. */
  readonly unread: readonly SourceProblem[];
  readonly objects: readonly ConfigObject[];
  readonly verdicts: ReadonlyMap<string, Verdict>;
}

/** A command has nothing else to do meanwhile. */
const sliceMs = Number.POSITIVE_INFINITY;

/** Everything that is wrong with the manifests of a folder, each thing by itself and with its place. */
async function findProblems({ texts, unread, objects, verdicts }: Checked): Promise<Finding[]> {
  const placeOf = createManifestPlaces(texts.files);
  const findings = unread.map(({ source, message }) => ({
    ...(placeOf(source, '') ?? apart(source)),
    message,
  }));
  for (const object of objects) {
    const verdict = verdicts.get(object.id);
    if (verdict === undefined || verdict.accepted.status === 'True') continue;
    for (const { field, message } of await faultsOf(object, verdict)) {
      const place = placeOf(verdict.label, field) ?? { source: verdict.label };
      findings.push({ ...place, ...(field !== '' && { field }), message });
    }
  }
  return findings.sort(byPlace);
}

const byPlace = (a: Finding, b: Finding): number =>
  compareText(a.source, b.source) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);

interface Fault {
  /** Empty for the object as a whole. */
  readonly field: string;
  readonly message: string;
}

async function faultsOf(object: ConfigObject, { accepted }: Verdict): Promise<readonly Fault[]> {
  if (accepted.reason !== 'Invalid') {
    // Where there is a list, its first line says of a running server what becomes of the rules in it.
    const [first = '', ...listed] = accepted.message.split('\n');
    const messages = listed.length === 0 ? [first] : listed;
    return messages.map((message) => ({ field: '', message: `${accepted.reason}: ${message}` }));
  }
  const problems = await runInSlices(problemsOfObject(object), { sliceMs });
  return problems.map(({ field, path, message, hint }) => ({
    field: field ?? path,
    message: hint === undefined ? message : `${message} (${hint})`,
  }));
}

/** `a.yaml:4:22`, as the parser says it, taken apart. */
function apart(source: string): Pick<Finding, 'source' | 'line' | 'column'> {
  const { file, line, column } = /^(?<file>.*):(?<line>\d+):(?<column>\d+)$/s.exec(source)?.groups ?? {};
  return file === undefined ? { source } : { source: file, line: Number(line), column: Number(column) };
}

const command = 'tollgate-xds-check';
const failedExitCode = 1;

const flags = {
  folder: { kind: 'text', value: 'folder', doc: 'The folder with the manifests.' },
  json: { kind: 'switch', doc: 'Print the findings as JSON.' },
} as const;

const help = `${command} -folder <folder> [flags]

Reads all RateLimitConfig manifests of a folder as the management server does and prints everything that is wrong with
them, one problem a line as <file>:<line>:<column>: <field>: <message>: what no object could be taken from, and objects that would not be accepted, conflicts among them
included. What is passed over, such as a link to a directory, is a warning.

${describeFlags(flags)}
Flags are written with one dash or two. Exits with 0 when every object would be accepted, 1 when one would not or there
is none, 2 when the flags are wrong.
`;

/** Does what the arguments of the checker of manifests ask for. */
export async function runCheck(args: readonly string[]): Promise<Outcome> {
  const parsed = parseFlags(flags, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const { folder, json } = parsed.values;
  if (folder === '') return wrongUsage(command, ['-folder is needed']);

  const obstacle = await whyNoDirectory(folder);
  if (obstacle !== undefined) return { exitCode: failedExitCode, errors: `${obstacle}\n` };
  const texts = await readTextFiles({ directory: folder, labelRoot: folder, ...manifestFiles });
  const read = await runInSlices(createFolderContents([]).update(texts), { sliceMs });
  const catalog = createCatalog({ encode: encodeRules, hash: hashContent });
  const { snapshot } = await runInSlices(catalog.apply([{ type: 'replaced', ...read }], 0), {
    sliceMs,
  });
  const found = await findProblems({
    texts,
    unread: read.problems,
    objects: read.objects,
    verdicts: catalog.verdicts,
  });
  if (found.length === 0 && read.objects.length === 0) found.push({ source: '', message: nothingThere });
  const findings: Findings = {
    problems: found.map((finding) => located(finding, folder)),
    warnings: texts.warnings.map((notice) => located(notice, folder)),
    objects: catalog.verdicts.size,
    domains: snapshot.resources.size,
    limits: catalog.rules,
  };
  return {
    exitCode: findings.problems.length === 0 ? 0 : failedExitCode,
    output: json
      ? `${JSON.stringify({ ok: findings.problems.length === 0, ...findings }, null, 2)}\n`
      : toText(findings),
  };
}

interface Findings {
  readonly problems: readonly Finding[];
  /** What was passed over: the server passes it over as well, and goes on. */
  readonly warnings: readonly SourceProblem[];
  readonly objects: number;
  readonly domains: number;
  readonly limits: number;
}

async function whyNoDirectory(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : `-folder ${path}: this is no folder`;
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return `-folder ${path}: ${missing ? 'there is no such folder' : String(error)}`;
  }
}

/** Nearly always the wrong folder. */
const nothingThere = `there is no ${resourceKind} in its .yaml, .yml and .json files`;

/** With a path that editors and shells find from here. */
function located<Notice extends { readonly source: string }>(notice: Notice, folder: string): Notice {
  return { ...notice, source: join(folder, notice.source) };
}

function toText({ problems, warnings, objects, domains, limits }: Findings): string {
  const lines = [
    ...problems.map(toLine),
    ...warnings.map(({ source, message }) => `${source}: warning: ${message}`),
  ];
  const sum =
    problems.length === 0
      ? `ok: ${counted(objects, 'object')}, ${counted(domains, 'domain')}, ${counted(limits, 'limit')}`
      : `not ok: ${counted(problems.length, 'problem')}`;
  return [...lines, sum].map((line) => `${line}\n`).join('');
}

/** `file:line:column: field: message`, on one line whatever a manifest says. */
function toLine({ source, line, column, field, message }: Finding): string {
  const place = line === undefined ? source : `${source}:${line}:${column ?? 1}`;
  return [place, ...(field === undefined ? [] : [field]), message].join(': ').replaceAll('\n', '\\n');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
