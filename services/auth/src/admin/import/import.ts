import { auditEntry } from '../../audit/audit-log.ts';
import { type AdminRequest, mayChangeRole } from '../../sessions/admin-request.ts';
import type { AdminContext } from '../users.ts';
import { type Line, splitLines } from './lines.ts';
import type { ImportedRow } from './store.ts';
import { type ImportedUser, type LineProblem, readUser } from './user.ts';

export interface ImportCounts {
  /** With a dry run: what an import would insert. */
  readonly imported: number;
  /** Present already. */
  readonly skipped: number;
  readonly failed: number;
  /** All lines up to this one are done. */
  readonly lastLine: number;
}

interface ImportOptions extends AdminRequest {
  readonly isDryRun: boolean;
  /** Lines before it are ignored. */
  readonly firstLine: number;
  /** Lines after it are not read. */
  readonly lastLine: number;
  readonly onProblem: (problem: LineProblem) => void;
  /** Called after each batch. */
  readonly onProgress?: (counts: ImportCounts) => void;
}

/** A statement of so many rows takes tens of milliseconds. */
const maxBatchUsers = 500;
const maxBatchChars = 1024 * 1024;
/** Batches in flight, each on a connection of its own: one is read while others are written. */
const maxInFlight = 3;
/** Attempts for a batch that meets concurrent sign-ups. */
const maxAttempts = 3;

interface Numbered {
  readonly line: number;
  readonly user: ImportedUser;
}

interface BatchResult {
  readonly imported: number;
  readonly skipped: number;
  readonly problems: readonly LineProblem[];
  readonly lastLine: number;
}

/** The batch that is being read. */
class OpenBatch {
  readonly users: Numbered[] = [];
  readonly problems: LineProblem[] = [];
  readonly #keys = new Set<string>();
  #chars = 0;
  lastLine = 0;

  /**
   * Returns false if the user must be in another batch: rows of a statement do not see each
   * other.
   */
  add(entry: Numbered, chars: number): boolean {
    const keys = uniqueKeys(entry.user);
    const isFull = this.users.length >= maxBatchUsers || this.#chars + chars > maxBatchChars;
    if (this.users.length > 0 && (isFull || keys.some((key) => this.#keys.has(key)))) return false;
    for (const key of keys) this.#keys.add(key);
    this.#chars += chars;
    this.users.push(entry);
    return true;
  }
}

function uniqueKeys({ id, email, phone, identities }: ImportedUser): readonly string[] {
  return [
    `id ${id}`,
    ...(email === '' ? [] : [`email ${email}`]),
    ...(phone === '' ? [] : [`phone ${phone}`]),
    ...identities.map(({ provider, providerId }) => `identity ${provider} ${providerId}`),
  ];
}

type ImportContext = AdminContext;

/**
 * Imports users from NDJSON. Users that are present are skipped, so an import may be repeated.
 * Memory is bounded.
 *
 * @throws what the database or the stream throws. All lines up to the last progress are done.
 */
export async function importUsers(
  context: ImportContext,
  chunks: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<ImportCounts> {
  return new Import(context, options).run(chunks);
}

class Import {
  readonly #context: ImportContext;
  readonly #options: ImportOptions;
  readonly #inFlight: Promise<BatchResult>[] = [];
  #batch = new OpenBatch();
  #counts: ImportCounts;
  #hasFailed = false;

  constructor(context: ImportContext, options: ImportOptions) {
    this.#context = context;
    this.#options = options;
    this.#counts = { imported: 0, skipped: 0, failed: 0, lastLine: options.firstLine - 1 };
  }

  async run(chunks: AsyncIterable<Uint8Array>): Promise<ImportCounts> {
    const { firstLine, lastLine } = this.#options;
    try {
      for await (const lines of splitLines(chunks))
        for (const line of lines) {
          if (line.number > lastLine) throw new TooManyLines(lastLine);
          if (line.number >= firstLine) await this.#add(line);
        }
      await this.#finishAll();
    } catch (error) {
      // Imports lines that were read before the stream failed, but nothing after a batch that
      // failed.
      if (!this.#hasFailed) await this.#finishAll();
      throw error;
    } finally {
      await Promise.allSettled(this.#inFlight);
    }
    return this.#counts;
  }

  async #add(line: Line): Promise<void> {
    const at = new Date(this.#options.metadata.nowMs);
    const read = readUser(line, { ...this.#context, at });
    if (read.ok && !mayChangeRole(this.#options, read.user.role, this.#context.settings))
      this.#batch.problems.push({ line: line.number, ...administratorProblem });
    else if (read.ok) {
      const entry = { line: line.number, user: read.user };
      const chars = line.text?.length ?? 0;
      if (!this.#batch.add(entry, chars)) {
        await this.#flush();
        this.#batch.add(entry, chars);
      }
    } else this.#batch.problems.push(read.problem);
    this.#batch.lastLine = line.number;
    if (this.#batch.problems.length >= maxBatchUsers) await this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#inFlight.length >= maxInFlight) await this.#finishOldest();
    const writing = writeBatch(this.#context, this.#batch, this.#options);
    // A batch that fails while older ones are awaited is handled when its turn comes.
    writing.catch(() => undefined);
    this.#inFlight.push(writing);
    this.#batch = new OpenBatch();
  }

  async #finishOldest(): Promise<void> {
    const result = await this.#inFlight.shift()?.catch((error: unknown) => {
      this.#hasFailed = true;
      throw error;
    });
    if (result === undefined) return;
    const { onProblem, onProgress } = this.#options;
    for (const problem of result.problems) onProblem(problem);
    this.#counts = {
      imported: this.#counts.imported + result.imported,
      skipped: this.#counts.skipped + result.skipped,
      failed: this.#counts.failed + result.problems.length,
      lastLine: result.lastLine,
    };
    onProgress?.(this.#counts);
  }

  async #finishAll(): Promise<void> {
    if (this.#batch.lastLine > 0) await this.#flush();
    while (this.#inFlight.length > 0) await this.#finishOldest();
  }
}

/** Further lines were not read. */
export class TooManyLines extends Error {
  override readonly name = 'TooManyLines';

  constructor(max: number) {
    super(`more than ${max} lines`);
  }
}

async function writeBatch(
  { store }: ImportContext,
  { users, problems, lastLine }: OpenBatch,
  { isDryRun, actor, metadata }: ImportOptions,
): Promise<BatchResult> {
  const found = [...problems];
  let imported = 0;
  let skipped = 0;
  let open: readonly Numbered[] = users;
  for (let attempt = 1; open.length > 0; attempt++) {
    const traits = { first_line: open[0]?.line ?? 0, last_line: lastLine };
    const audit = auditEntry(actor, 'users_imported', { metadata, traits });
    const batch = open;
    const rows = await store
      .transaction(({ imports }) =>
        imports.insert(
          batch.map(({ user }) => user),
          { isDryRun, audit },
        ),
      )
      .catch((error: unknown) => {
        if (attempt >= maxAttempts || !isConcurrencyError(error)) throw error;
        return undefined;
      });
    if (rows === undefined) continue;
    const results = batch.map((entry, index) => ({
      entry,
      result: classify(entry.user, rows[index], isDryRun),
    }));
    imported += results.filter(({ result }) => result === 'imported').length;
    skipped += results.filter(({ result }) => result === 'skipped').length;
    const isLast = attempt >= maxAttempts;
    for (const { entry, result } of results) {
      const problem =
        typeof result === 'object' ? result : result === 'raced' && isLast ? takenProblem : undefined;
      if (problem) found.push({ line: entry.line, ...problem });
    }
    open = isLast ? [] : results.filter(({ result }) => result === 'raced').map(({ entry }) => entry);
  }
  found.sort((a, b) => a.line - b.line);
  return { imported, skipped, problems: found, lastLine };
}

type Problem = Omit<LineProblem, 'line'>;

const administratorProblem: Problem = {
  code: 'insufficient_scope',
  message: 'API keys must not give a role of SVC_JWT_ADMIN_ROLES',
};
const takenProblem: Problem = {
  code: 'conflict',
  message: 'another request inserts the same user, import it again',
};

/** `raced`: a concurrent transaction inserts the same values. */
function classify(
  { hasId }: ImportedUser,
  row: ImportedRow | undefined,
  isDryRun: boolean,
): 'imported' | 'skipped' | 'raced' | Problem {
  if (row === undefined) return 'raced';
  if (row.isNew) return 'imported';
  if (row.hasSameId) return 'skipped';
  const { emailOwner, phoneOwner, identityOwner } = row;
  const owners = new Set([emailOwner, phoneOwner, identityOwner].filter((owner) => owner !== null));
  if (owners.size === 0) return isDryRun ? 'imported' : 'raced';
  if (!hasId && owners.size === 1) return 'skipped';
  if (emailOwner !== null) return { code: 'email_exists', message: 'another user has this email address' };
  if (phoneOwner !== null) return { code: 'phone_exists', message: 'another user has this phone number' };
  return { code: 'identity_already_exists', message: 'another user has an identity of this user' };
}

/** @see https://www.postgresql.org/docs/18/errcodes-appendix.html */
function isConcurrencyError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '23505' || error.code === '40P01');
}
