import { stat } from 'node:fs/promises';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import { readTextFiles } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import type { ConfigObject, ResourceSource, SourceEvent, UnreadFile } from '../catalog/source.ts';
import type { Context } from '../context.ts';
import type { PolicySource } from '../policies/policy-source.ts';
import { FolderContents, manifestFiles } from './folder-contents.ts';
import type { LastValidFiles } from './last-valid-files.ts';
import { isPolicy } from './manifests.ts';

/** Longest time without yielding to streams and health checks while a large folder is read. */
const sliceMs = 5;

/** Lines about manifests of other kinds per read. */
const maxLoggedOthers = 20;

/** Policies in one line. */
const maxLoggedKept = 20;

/** Reads manifests from a folder and follows changes. Each read is one `replaced` event. */
export class FolderSource implements ResourceSource {
  readonly #context: Pick<Context, 'logger' | 'metrics'>;
  readonly #folder: string;
  readonly #contents: FolderContents;
  readonly #lastValid: LastValidFiles | undefined;
  readonly #comparesStored: boolean;
  /** Stored objects and policies, for the first event. */
  #before: readonly ConfigObject[] = [];
  #watch: FileWatch | undefined;
  #reading: Promise<void> = Promise.resolve();
  #closed: boolean = false;
  /** Kept while the folder cannot be read. */
  #lastEvent: SourceEvent & { type: 'replaced' } = { type: 'replaced', objects: [], problems: [] };
  #policyIds: readonly string[] = [];
  #kept: readonly string[] = [];
  #onPolicies: ((event: SourceEvent) => void) | undefined;

  constructor(
    context: Pick<Context, 'logger' | 'metrics'>,
    options: {
      readonly folder: string;
      /** Namespaces whose objects count; all when empty. */
      readonly namespaces: readonly string[];
      /** Where last valid versions are kept for a restart. */
      readonly lastValid?: LastValidFiles | undefined;
      /**
       * Whether the first event has the stored objects, for a guard that compares them. Otherwise
       * deleted ones are forgotten at the start.
       */
      readonly comparesStored?: boolean;
    },
  ) {
    this.#context = context;
    this.#folder = options.folder;
    this.#contents = new FolderContents(options.namespaces);
    this.#lastValid = options.lastValid;
    this.#comparesStored = options.comparesStored ?? false;
  }

  /** The AccessPolicies of the folder, which are read with the other objects. */
  readonly policies: PolicySource = {
    start: async ({ onEvent }) => {
      this.#onPolicies = onEvent;
    },
    close: async () => {
      this.#onPolicies = undefined;
    },
  };

  async start(onEvent: (event: SourceEvent) => void): Promise<void> {
    await requireDirectory(this.#folder);
    if (this.#lastValid !== undefined) {
      const stored = await this.#lastValid.load((id) => this.#contents.find(id));
      this.#contents.restore(stored);
      if (this.#comparesStored) this.#before = this.#contents.select(stored.objects);
    }
    const { logger } = this.#context;
    // The watch comes first, so that a change during the first read is not missed.
    const onChange = () => this.#readNext(onEvent);
    this.#watch = await watchFiles({ paths: [this.#folder], onChange, logger });
    if (this.#closed) this.#watch.close();
    await this.#readNext(onEvent);
    this.#pruneStored();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch?.close();
    await this.#reading.catch(() => undefined);
  }

  /** A folder without objects may be a volume that is not mounted. */
  #pruneStored(): void {
    const ids = [...this.#lastEvent.objects.map(({ id }) => id), ...this.#policyIds];
    if (ids.length > 0 && !this.#comparesStored) this.#lastValid?.prune(new Set(ids));
  }

  /** Reads run one after the other, so that events are in order. */
  #readNext(onEvent: (event: SourceEvent) => void): Promise<void> {
    this.#reading = this.#readAfter(this.#reading, onEvent);
    return this.#reading;
  }

  async #readAfter(before: Promise<void>, onEvent: (event: SourceEvent) => void): Promise<void> {
    // The caller of that read handles its failure.
    await before.catch(() => undefined);
    if (this.#closed) return;
    const found = await this.#read();
    if (this.#closed) return;
    this.#lastEvent = found.event;
    const stored = this.#before.filter(isPolicy);
    if (found.policies !== undefined)
      this.#onPolicies?.({
        type: 'replaced',
        ...found.policies,
        ...(stored.length > 0 && { before: stored }),
      });
    const configs = this.#before.filter((object) => !isPolicy(object));
    onEvent(configs.length === 0 ? this.#lastEvent : { ...this.#lastEvent, before: configs });
    this.#before = [];
  }

  async #read(): Promise<FolderRead> {
    const { logger, metrics } = this.#context;
    const directory = this.#folder;
    const texts = await readTextFiles({ directory, labelRoot: directory, ...manifestFiles });
    const missing = texts.problems.find(({ source }) => source === directory);
    // A volume that is unmounted for a moment must not remove all limits.
    if (missing !== undefined) {
      metrics.sourceErrors.inc({ operation: 'list' });
      const problems = [{ ...missing, message: `cannot be read: ${missing.message}` }];
      return { event: { ...this.#lastEvent, problems }, policies: undefined };
    }
    metrics.relists.inc();
    metrics.sourceErrors.inc({ operation: 'read' }, texts.problems.length);
    for (const { source, message } of texts.warnings) logger.warn({ path: source }, message);
    const found = await runInSlices(this.#contents.update(texts), { sliceMs });
    const { objects, policies, problems, others, unread, kept } = found;
    for (const { label, kind } of others.slice(0, maxLoggedOthers))
      logger.info({ file: label, kind }, 'ignored manifest of another kind');
    const left = others.length - maxLoggedOthers;
    if (left > 0) logger.info({ manifests: left }, 'ignored more manifests of other kinds');
    const named = kept.slice(0, maxLoggedKept);
    if (kept.some((id) => !this.#kept.includes(id)))
      logger.warn({ policies: named, count: kept.length }, 'kept missing policies while a file is broken');
    this.#kept = kept;
    this.#policyIds = policies.map(({ id }) => id);
    return { event: { type: 'replaced', objects, problems }, policies: { objects: policies, unread } };
  }
}

interface FolderRead {
  readonly event: SourceEvent & { readonly type: 'replaced' };
  /** Undefined when the folder cannot be read. */
  readonly policies:
    | { readonly objects: readonly ConfigObject[]; readonly unread: readonly UnreadFile[] }
    | undefined;
}

async function requireDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const problem = found instanceof Error ? `cannot be read (${found.code})` : 'is not a directory';
  throw new Error(`the folder of manifests ${directory} ${problem}: set XDS_FOLDER to an existing directory`);
}
