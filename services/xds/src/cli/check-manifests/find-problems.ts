import { compareText } from '@tollgate/kit/text';
import type { FolderTexts } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import { problemsOfObject } from '../../domain/accept-object.ts';
import type { ConfigObject, SourceProblem } from '../../domain/config-object.ts';
import type { Verdict } from '../../domain/verdict.ts';
import { createManifestPlaces } from '../../resource-sources/folder/manifest-places.ts';

/** One thing that is wrong. */
export interface Finding {
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
export interface Checked {
  readonly texts: FolderTexts;
  /** What no object could be taken from. */
  readonly unread: readonly SourceProblem[];
  readonly objects: readonly ConfigObject[];
  readonly verdicts: ReadonlyMap<string, Verdict>;
}

/** A command has nothing else to do meanwhile. */
const sliceMs = Number.POSITIVE_INFINITY;

/** Everything that is wrong with the manifests of a folder, each thing by itself and with its place. */
export async function findProblems({ texts, unread, objects, verdicts }: Checked): Promise<Finding[]> {
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
