import { isAppError } from '@tollgate/kit/errors';
import type { Static } from 'typebox';
import { Errors } from 'typebox/value';
import { type ApiKey, toColumns } from '../../api-keys/api-key.ts';
import type { ApiKeysContext } from '../../api-keys/context.ts';
import { newKeyValues, readKeyInput } from '../../api-keys/input.ts';
import { checkRightsOfGiver, readGiver } from '../../api-keys/rights.ts';
import type { ImportedKeyRow } from '../../api-keys/store.ts';
import { auditEntry } from '../../audit/audit-log.ts';
import { errors } from '../../errors.ts';
import type { AdminRequest } from '../../sessions/admin-request.ts';
import { importedKey, readOwner, toKeyInput } from '../api-key-body.ts';
import { type ImportCounts, TooManyLines } from './import.ts';
import { type Line, splitLines } from './lines.ts';
import { type LineProblem, parseLine } from './user.ts';

interface KeyImportOptions extends AdminRequest {
  readonly isDryRun: boolean;
  /** Lines after it are not read. */
  readonly lastLine: number;
  readonly onProblem: (problem: LineProblem) => void;
  /** Called after each batch. */
  readonly onProgress: (counts: ImportCounts) => void;
}

interface NumberedKey {
  readonly line: number;
  readonly key: ApiKey & { readonly digest: string };
}

/** A statement of so many rows takes tens of milliseconds. */
const maxBatchKeys = 500;

/**
 * Imports digests of keys from NDJSON. Digests that are present are skipped, so an import may be
 * repeated.
 *
 * @throws what the database or the stream throws, and TooManyLines. All lines up to the last
 * progress are done.
 */
export async function importApiKeys(
  context: ApiKeysContext,
  chunks: AsyncIterable<Uint8Array>,
  options: KeyImportOptions,
): Promise<ImportCounts> {
  let counts: ImportCounts = { imported: 0, skipped: 0, failed: 0, lastLine: 0 };
  let batch: NumberedKey[] = [];
  const fail = (problem: LineProblem): void => {
    options.onProblem(problem);
    counts = { ...counts, failed: counts.failed + 1 };
  };
  const flush = async (lastLine: number): Promise<void> => {
    const refused = await findRefused(context, batch, options);
    for (const problem of refused.values()) fail(problem);
    batch = batch.filter(({ line }) => !refused.has(line));
    const rows = await writeKeys(context, batch, options);
    for (const [index, { line }] of batch.entries()) {
      const row = rows[index];
      if (row?.has_owner === false)
        fail({ line, code: 'validation_failed', message: 'the owner does not exist' });
      else if (row?.is_new === true) counts = { ...counts, imported: counts.imported + 1 };
      else counts = { ...counts, skipped: counts.skipped + 1 };
    }
    batch = [];
    counts = { ...counts, lastLine };
    options.onProgress(counts);
  };
  let lastLine = 0;
  for await (const lines of splitLines(chunks))
    for (const line of lines) {
      if (line.number > options.lastLine) {
        await flush(lastLine);
        throw new TooManyLines(options.lastLine);
      }
      const read = readKeyLine(line, context, options);
      if (read.ok) batch.push({ line: line.number, key: read.key });
      else fail(read.problem);
      lastLine = line.number;
      if (batch.length >= maxBatchKeys) await flush(lastLine);
    }
  await flush(lastLine);
  return counts;
}

async function writeKeys(
  { store }: ApiKeysContext,
  batch: readonly NumberedKey[],
  { isDryRun, actor, metadata }: KeyImportOptions,
): Promise<readonly ImportedKeyRow[]> {
  if (batch.length === 0) return [];
  const traits = { first_line: batch[0]?.line ?? 0, last_line: batch.at(-1)?.line ?? 0 };
  const audit = auditEntry(actor, 'api_keys_imported', { metadata, traits });
  return store.apiKeys.import(
    batch.map(({ key }) => key),
    { isDryRun, audit },
  );
}

/** Lines that an API key may not import, because they have rights that it lacks. */
async function findRefused(
  context: ApiKeysContext,
  batch: readonly NumberedKey[],
  options: KeyImportOptions,
): Promise<ReadonlyMap<number, LineProblem>> {
  const refused = new Map<number, LineProblem>();
  if (options.scopes === undefined || batch.length === 0) return refused;
  const ownerIds = new Set(batch.flatMap(({ key }) => key.user_id ?? []));
  const giver = await readGiver(context, options, [...ownerIds]);
  for (const { line, key } of batch)
    try {
      checkRightsOfGiver(giver, key);
    } catch (error) {
      if (!isAppError(error)) throw error;
      refused.set(line, { line, code: error.code, message: error.message });
    }
  return refused;
}

type ReadLine =
  | { readonly ok: true; readonly key: NumberedKey['key'] }
  | { readonly ok: false; readonly problem: LineProblem };

function readKeyLine(line: Line, { random }: ApiKeysContext, options: KeyImportOptions): ReadLine {
  const { metadata, actor } = options;
  try {
    if (line.text === undefined) throw errors.bad_json({ message: 'the line is too long' });
    const given = Object.fromEntries(
      Object.entries(parseLine(line.text)).filter(([, value]) => value !== null),
    );
    const [problem] = Errors(importedKey, given);
    if (problem !== undefined)
      throw errors.validation_failed({
        message: `${problem.instancePath.slice(1) || 'line'} ${problem.message}`,
      });
    // The schema has been compared.
    const { digest, prefix = '', last4 = '', owner, ...values } = given as Static<typeof importedKey>;
    const at = new Date(metadata.nowMs);
    const columns = readKeyInput(toKeyInput(values), newKeyValues, metadata.nowMs);
    const key = {
      ...columns,
      ...toColumns(readOwner(owner)),
      id: random.uuid(),
      digest: digest.toLowerCase(),
      prefix,
      last4,
      created_at: at,
      updated_at: at,
      last_used_at: null,
      rotated_from: null,
      created_by: actor.id,
      by_member: false,
    };
    return { ok: true, key };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { ok: false, problem: { line: line.number, code: error.code, message: error.message } };
  }
}
