import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFlags, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { isMissingFile } from '@tollgate/kit/errors';
import { compareText } from '@tollgate/kit/text';
import { readTextFiles } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import { policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceKind } from '@tollgate/rules/resource-shape';
import { Catalog } from '../catalog/catalog.ts';
import type { ConfigObject } from '../catalog/source.ts';
import { findObjectProblems } from '../catalog/validation.ts';
import type { ValidationResult } from '../catalog/validation-result.ts';
import { parseHostsByNamespace } from '../policies/allowed-hosts.ts';
import { PolicyCatalog } from '../policies/policy-catalog.ts';
import type { PolicyFinding } from '../policies/policy-result.ts';
import { FolderContents, manifestFiles } from '../sources/folder-contents.ts';
import { ManifestPositions, parsePosition } from '../sources/manifest-positions.ts';

const command = 'tollgate-xds-check';
const failedExitCode = 1;

const flags = {
  folder: { kind: 'text', value: 'folder', doc: 'The folder with the manifests.' },
  'allowed-hosts': {
    kind: 'text',
    value: 'shop=api.example.com,...',
    doc: 'Hosts that AccessPolicies of each namespace may have, as in XDS_ALLOWED_HOSTS. Default: every host.',
  },
  json: { kind: 'switch', doc: 'Print the findings as JSON.' },
} as const;

const help = `${command} -folder <folder> [flags]

Reads all RateLimitConfig and AccessPolicy manifests of a folder as the xDS server does, and prints every problem on a line of its
own, as <file>:<line>:<column>: <field>: <message>. Problems are files and manifests that are not valid objects, and
objects that would not be accepted, including conflicts. Ignored files, such as links to directories, are warnings, and
so are limits of an AccessPolicy that do not count all callers that it allows.

${describeFlags(flags)}
Flags take one dash or two. Exits with 0 when every object would be accepted, 1 when one would not or there is none, 2
when the flags are invalid.
`;

/** The command has no other work to yield to. */
const sliceMs = Number.POSITIVE_INFINITY;

interface Findings {
  readonly problems: readonly Finding[];
  /** Ignored files, which the server ignores as well, and limits with less effect than intended. */
  readonly warnings: readonly Finding[];
  readonly objects: number;
  readonly domains: number;
  readonly limits: number;
}

type HostsByNamespace = ReadonlyMap<string, readonly string[]>;

interface Finding {
  /** The file. */
  readonly source: string;
  /** Line from 1; absent when it concerns the whole file. */
  readonly line?: number;
  readonly column?: number;
  /** JSON path in the manifest. */
  readonly field?: string;
  readonly message: string;
}

export async function runCheck(args: readonly string[]): Promise<Outcome> {
  const parsed = parseFlags(flags, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const { folder, json, 'allowed-hosts': allowed } = parsed.values;
  if (folder === '') return wrongUsage(command, ['-folder is required']);
  const hosts = parseHostsByNamespace(allowed === '' ? [] : allowed.split(','));
  if (!hosts.ok) return wrongUsage(command, [`-allowed-hosts: ${hosts.invalid} is not namespace=host`]);

  const problem = await checkDirectory(folder);
  if (problem !== undefined) return { exitCode: failedExitCode, errors: `${problem}\n` };
  const findings = await checkFolder(folder, hosts.value);
  const ok = findings.problems.length === 0;
  return {
    exitCode: ok ? 0 : failedExitCode,
    output: json ? `${JSON.stringify({ ok, ...findings }, null, 2)}\n` : formatFindings(findings),
  };
}

async function checkDirectory(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : `-folder ${path}: not a directory`;
  } catch (error) {
    return `-folder ${path}: ${isMissingFile(error) ? 'no such directory' : String(error)}`;
  }
}

async function checkFolder(folder: string, hosts: HostsByNamespace): Promise<Findings> {
  const texts = await readTextFiles({ directory: folder, labelRoot: folder, ...manifestFiles });
  const contents = await runInSlices(new FolderContents([]).update(texts), { sliceMs });
  const { objects, policies, problems: invalid } = contents;
  const catalog = new Catalog();
  const event = { type: 'replaced', objects, problems: invalid } as const;
  const { snapshot } = await runInSlices(catalog.apply([event], 0), { sliceMs });

  const positions = new ManifestPositions(texts.files);
  const problems: Finding[] = invalid.map(({ source, message }) => ({
    ...(positions.find(source, '') ?? parsePosition(source)),
    message,
  }));
  for (const object of objects) {
    const result = catalog.results.get(object.id);
    if (result !== undefined) problems.push(...(await findProblems(object, result, positions)));
  }
  const ofPolicies = await findPolicyFindings(policies, { positions, hosts });
  problems.push(...ofPolicies.problems);
  problems.sort(byPosition);
  // Nearly always the wrong folder.
  if (problems.length === 0 && objects.length + policies.length === 0)
    problems.push({
      source: '',
      message: `no ${resourceKind} or ${policyKind} found in .yaml, .yml and .json files`,
    });

  // Paths are relative to the working directory, which editors and shells resolve.
  const locate = <T extends { readonly source: string }>(one: T): T => ({
    ...one,
    source: join(folder, one.source),
  });
  return {
    problems: problems.map(locate),
    warnings: [...texts.warnings, ...ofPolicies.warnings].map(locate),
    objects: catalog.results.size + policies.length,
    domains: snapshot.resources.size,
    limits: catalog.rules,
  };
}

async function findPolicyFindings(
  policies: readonly ConfigObject[],
  { positions, hosts }: { readonly positions: ManifestPositions; readonly hosts: HostsByNamespace },
): Promise<Pick<Findings, 'problems' | 'warnings'>> {
  const allowedHosts = hosts.size === 0 ? undefined : (namespace: string) => hosts.get(namespace) ?? [];
  const catalog = new PolicyCatalog({ allowedHosts });
  await runInSlices(catalog.apply([{ type: 'replaced', objects: policies }]), { sliceMs });
  const toFinding = ({ source, message, field }: PolicyFinding): Finding => ({
    ...(positions.find(source, field ?? '') ?? { source }),
    ...(field !== undefined && { field }),
    message,
  });
  const results = [...catalog.results.values()];
  return {
    problems: results.flatMap((result) => result.problems.map(toFinding)),
    warnings: results.flatMap((result) => result.warnings.map(toFinding)),
  };
}

/** Why an object would not be accepted. */
async function findProblems(
  object: ConfigObject,
  { accepted, label }: ValidationResult,
  positions: ManifestPositions,
): Promise<readonly Finding[]> {
  if (accepted.status === 'True') return [];
  const locate = (field: string) => positions.find(label, field) ?? { source: label };
  if (accepted.reason !== 'Invalid') {
    // The first line of a list describes what is in force in a running server.
    const [first = '', ...listed] = accepted.message.split('\n');
    const messages = listed.length === 0 ? [first] : listed;
    return messages.map((message) => ({ ...locate(''), message: `${accepted.reason}: ${message}` }));
  }
  const problems = await runInSlices(findObjectProblems(object), { sliceMs });
  return problems.map(({ field: name, path, message, hint }) => {
    const field = name ?? path;
    const text = hint === undefined ? message : `${message} (${hint})`;
    return { ...locate(field), ...(field !== '' && { field }), message: text };
  });
}

const byPosition = (a: Finding, b: Finding): number =>
  compareText(a.source, b.source) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);

function formatFindings({ problems, warnings, objects, domains, limits }: Findings): string {
  const summary =
    problems.length === 0
      ? `ok: ${formatCount(objects, 'object')}, ${formatCount(domains, 'domain')}, ${formatCount(limits, 'limit')}`
      : `not ok: ${formatCount(problems.length, 'problem')}`;
  const lines = [
    ...problems.map((problem) => formatFinding(problem)),
    ...warnings.map((warning) => formatFinding(warning, 'warning: ')),
    summary,
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** `file:line:column: field: message`, on one line; the severity comes after the position. */
function formatFinding({ source, line, column, field, message }: Finding, severity = ''): string {
  const position = line === undefined ? source : `${source}:${line}:${column ?? 1}`;
  const text = [...(field === undefined ? [] : [field]), message].join(': ').replaceAll('\n', '\\n');
  return `${position}: ${severity}${text}`;
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
