import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFlags, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { readTextFiles } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import { resourceKind } from '@tollgate/rules/resource-shape';
import { createCatalog } from '../../domain/catalog.ts';
import type { SourceProblem } from '../../domain/config-object.ts';
import { encodeRules, hashContent } from '../../pipeline/encode-rules.ts';
import { createFolderContents } from '../../resource-sources/folder/folder-contents.ts';
import { manifestFiles } from '../../resource-sources/folder/folder-source.ts';
import { type Finding, findProblems } from './find-problems.ts';

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

/** A command has nothing else to do meanwhile. */
const sliceMs = Number.POSITIVE_INFINITY;

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
  const { snapshot } = await runInSlices(catalog.apply([{ type: 'replaced', ...read }], 0), { sliceMs });
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
