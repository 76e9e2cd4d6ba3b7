/** The part of an entry of the audit log that its order needs. */
interface TailEntry {
  readonly id: string;
  /** RFC 3339. */
  readonly created_at: string;
}

/** A page of the log, newest first. */
interface AuditPage<Entry> {
  readonly entries: readonly Entry[];
  /** Cursor of the next page, if there is one. */
  readonly next: string | undefined;
}

type ReadPage<Entry> = (paging: {
  readonly limit: string;
  readonly cursor?: string;
}) => Promise<AuditPage<Entry>>;

const limit = '200';

/** Bounds what one turn reads after an outage. */
const maxPages = 10;

/** Entries of transactions that take long appear behind newer ones. */
const lateMs = 60_000;

/** Reads each entry of an audit log once, across pages and outages. */
export class AuditTail<Entry extends TailEntry> {
  readonly #readPage: ReadPage<Entry>;
  /** Earlier entries are not read. */
  #floorMs: number;
  readonly #seen = new Map<string, number>();

  constructor(readPage: ReadPage<Entry>, floorMs: number) {
    this.#readPage = readPage;
    this.#floorMs = floorMs;
  }

  /** Starts behind the newest entry: the clock of the server may be another one. */
  static async startNow<Entry extends TailEntry>(readPage: ReadPage<Entry>): Promise<AuditTail<Entry>> {
    const {
      entries: [newest],
    } = await readPage({ limit: '1' });
    const newestMs = newest === undefined ? Number.NEGATIVE_INFINITY : toMs(newest);
    const tail = new AuditTail(readPage, newestMs);
    if (newest !== undefined) tail.#seen.set(newest.id, newestMs);
    return tail;
  }

  /** Entries that were not read before, oldest first, and whether these are all. */
  async readNew(): Promise<{ readonly entries: readonly Entry[]; readonly isComplete: boolean }> {
    const found: Entry[] = [];
    let cursor: string | undefined;
    let isComplete = false;
    for (let pages = 0; pages < maxPages && !isComplete; pages += 1) {
      const { entries, next } = await this.#readPage({ limit, ...(cursor !== undefined && { cursor }) });
      const added = entries.filter((entry) => toMs(entry) >= this.#floorMs && !this.#seen.has(entry.id));
      found.push(...added);
      isComplete = added.length < entries.length || next === undefined;
      cursor = next;
    }
    for (const entry of found) this.#seen.set(entry.id, toMs(entry));
    const newestMs = Math.max(...this.#seen.values());
    this.#floorMs = Math.max(this.#floorMs, newestMs - lateMs);
    for (const [id, ms] of this.#seen) if (ms < this.#floorMs) this.#seen.delete(id);
    return { entries: found.toReversed(), isComplete };
  }
}

function toMs({ created_at: created }: TailEntry): number {
  return Date.parse(created);
}
