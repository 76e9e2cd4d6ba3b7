import { checkedClock, epochSeconds, Stopwatch } from './clock.ts';
import { ConfigurationError } from './errors.ts';
import { copyPlain, isObject, isTooDeep } from './objects.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';

/** Beyond it, the document that was loaded first is dropped. */
const MAXIMUM_DOCUMENTS = 100;

/** Larger documents are not kept. A key set of 100 RSA keys with certificates has about 300 kB. */
const MAXIMUM_CHARACTERS = 512 * 1024;

/** An imported document may be from a machine whose clock is ahead by this. */
const MAXIMUM_CLOCK_DIFFERENCE_SECONDS = 60;

/** A document with the time since it was loaded. */
export interface CachedDocument {
  readonly document: object;
  /** Epoch seconds when it was loaded. */
  readonly fetchedAt: number;
  readonly age: { elapsedSeconds(): number };
}

/** The content of a cache as plain data, which JSON supports. */
export interface ExportedDocuments {
  readonly documents: readonly {
    readonly url: string;
    /** Epoch seconds when it was loaded. */
    readonly fetchedAt: number;
    readonly document: object;
  }[];
}

/** Options of a DocumentCache. */
export interface DocumentCacheOptions {
  /**
   * The result of `export` of another cache. Its keys are trusted: keep it where only the
   * application can write.
   */
  readonly imported?: unknown;
  /** The wall clock in epoch seconds. Default from `Date`. */
  readonly now?: () => number;
}

const optionNames: OptionNames<DocumentCacheOptions> = { imported: 1, now: 1 };

/**
 * Metadata and key sets of authorization servers, for several clients (option `cache`) and for
 * short-lived processes, which import what an earlier one has exported. Clients that share a cache
 * trust the same servers. It keeps the last 100 documents of at most 512 Ki characters.
 *
 * @example
 * ```ts
 * const cache = new DocumentCache({ imported: JSON.parse(stored) });
 * const client = await discoverClient('https://as.example', { clientId: 'app', cache });
 * await store.set(JSON.stringify(cache.export()));
 * ```
 */
export class DocumentCache {
  readonly #now: () => number;
  /** Documents by URL; the one that was loaded first comes first. */
  readonly #documents = new Map<string, CachedDocument>();
  readonly #loading = new Map<string, Promise<CachedDocument>>();

  /** @throws {ConfigurationError} naming every member of `imported` that is not valid */
  constructor(options: DocumentCacheOptions = {}) {
    assertKnownOptions('DocumentCache', options, optionNames);
    this.#now = checkedClock(options.now ?? epochSeconds);
    if (options.imported === undefined) return;
    const now = this.#now();
    for (const { url, fetchedAt, document } of checkExported(options.imported).documents) {
      if (fetchedAt > now + MAXIMUM_CLOCK_DIFFERENCE_SECONDS) continue;
      const age = new Stopwatch(this.#now, { elapsedSeconds: Math.max(0, now - fetchedAt) });
      this.#keep(url, { document: copyPlain(document), fetchedAt, age });
    }
  }

  /** All documents, with the times at which they were loaded. */
  export(): ExportedDocuments {
    const documents = Array.from(this.#documents, ([url, { fetchedAt, document }]) => ({
      ...{ url, fetchedAt },
      document: copyPlain(document),
    }));
    return { documents };
  }

  /** The document of a URL, of any age. */
  get(url: string): CachedDocument | undefined {
    return this.#documents.get(url);
  }

  /** Loads and keeps a document; concurrent loads of a URL are one. Failures are not kept. */
  async load(url: string, load: () => Promise<object>): Promise<CachedDocument> {
    const loading =
      this.#loading.get(url) ??
      load()
        .then((document) => this.put(url, document))
        .finally(() => this.#loading.delete(url));
    this.#loading.set(url, loading);
    return await loading;
  }

  /** Keeps a document that was loaded now. */
  put(url: string, document: object): CachedDocument {
    const cached = { document, fetchedAt: this.#now(), age: new Stopwatch(this.#now) };
    this.#keep(url, cached);
    return cached;
  }

  #keep(url: string, cached: CachedDocument): void {
    this.#documents.delete(url);
    if (JSON.stringify(cached.document).length > MAXIMUM_CHARACTERS) return;
    this.#documents.set(url, cached);
    const [first] = this.#documents.keys();
    if (this.#documents.size > MAXIMUM_DOCUMENTS && first !== undefined) this.#documents.delete(first);
  }
}

/** The documents are checked when they are used, as responses are. */
function checkExported(value: unknown): ExportedDocuments {
  const problems =
    isObject(value) && Array.isArray(value.documents)
      ? listProblems(value.documents)
      : ['it must be an object with an array `documents`'];
  if (problems.length > 0)
    throw new ConfigurationError(`\`imported\` is no exported DocumentCache: ${problems.join('; ')}`);
  // All members were checked.
  return value as ExportedDocuments;
}

function listProblems(documents: readonly unknown[]): string[] {
  if (documents.length > MAXIMUM_DOCUMENTS)
    return [`\`documents\` must have at most ${MAXIMUM_DOCUMENTS} elements`];
  return documents.flatMap((item, index) => {
    const name = `documents[${index}]`;
    if (!isObject(item)) return [`\`${name}\` must be an object`];
    const { url, fetchedAt, document } = item;
    const isUrl = typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? '');
    return [
      ...(isUrl ? [] : [`\`${name}.url\` must be an http(s) URL`]),
      ...(Number.isFinite(fetchedAt) ? [] : [`\`${name}.fetchedAt\` must be a number of seconds`]),
      ...(isObject(document) ? [] : [`\`${name}.document\` must be an object`]),
      ...(isTooDeep(document) ? [`\`${name}.document\` has too many levels`] : []),
    ];
  });
}
