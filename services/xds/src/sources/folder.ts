import { stat } from 'node:fs/promises';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import { compareText } from '@tollgate/kit/text';
import { type FolderTexts, readTextFiles, type TextFile } from '@tollgate/kit/text-files';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import { policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';
import type {
  ConfigObject,
  ResourceSource,
  SourceEvent,
  SourceProblem,
  UnreadFile,
} from '../catalog/source.ts';
import type { StoredVersion } from '../catalog/stored-version.ts';
import type { Context } from '../context.ts';
import type { PolicySource } from '../policies/policy-source.ts';
import type { LastValidFiles } from './last-valid-files.ts';
import { isPolicy, type Manifest, type ManifestObject, parseManifests, readManifest } from './manifests.ts';

/** Other files, such as a README or a backup, may be in the same folder. */
export const manifestFiles = { ignoreDotFiles: true, extensions: ['.yaml', '.yml', '.json'] };

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
      if (this.#comparesStored) this.#before = this.#contents.select(stored);
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

/** The objects of a folder at one moment. */
interface FolderObjects {
  readonly objects: readonly ConfigObject[];
  readonly policies: readonly ConfigObject[];
  readonly problems: readonly SourceProblem[];
  /** Manifests of other kinds, in files that have changed. */
  readonly others: readonly OtherManifest[];
  readonly unread: readonly UnreadFile[];
  /** Ids of policies that no file has, and which may be in one that cannot be understood. */
  readonly kept: readonly string[];
}

interface OtherManifest {
  readonly label: string;
  readonly kind: string;
}

interface FileContents {
  /** Undefined when the file could not be read and its previous objects stay. */
  readonly text: string | undefined;
  readonly objects: readonly ManifestObject[];
  readonly others: readonly OtherManifest[];
  readonly problems: readonly SourceProblem[];
  /** Whether the file may have policies that are not in `objects`. */
  readonly isIncomplete: boolean;
  /** Why policies of the file may be missing: no version of it was read, and none is stored. */
  readonly unread?: UnreadFile | undefined;
}

interface Version {
  readonly object: ManifestObject;
  readonly content: string;
  readonly generation: number;
}

const noContents: Omit<FileContents, 'text'> = { objects: [], others: [], problems: [], isIncomplete: true };

/** The contents of a folder across reads. Invalid files keep their objects. */
export class FolderContents {
  readonly #namespaces: readonly string[];
  #files = new Map<string, FileContents>();
  #versions = new Map<string, Version>();
  readonly #stored = new Map<string, StoredVersion>();
  #reads = 0;
  #isFirstUpdate: boolean = true;
  /** Policies of the last update, or stored ones. */
  #policies: readonly ManifestObject[] = [];

  /** Objects of other namespaces are ignored; empty for all. */
  constructor(namespaces: readonly string[]) {
    this.#namespaces = namespaces;
  }

  /** Sets the last valid versions of an earlier process, before the first update. */
  restore(objects: readonly ManifestObject[]): void {
    this.#policies = objects.filter(isPolicy);
    for (const object of objects) {
      const { id, label, manifest } = object;
      const readSpec = () => Reflect.get(Object(manifest), 'spec');
      this.#stored.set(id, { generation: 0, readSpec });
      const source = label.slice(0, label.lastIndexOf('#'));
      const file = this.#files.get(source) ?? noContents;
      this.#files.set(source, { ...file, text: undefined, objects: [...file.objects, object] });
    }
  }

  /** The stored objects of the selected namespaces, older than any version that is read. */
  select(stored: readonly ManifestObject[]): readonly ConfigObject[] {
    return stored
      .filter((object) => this.#isSelected(object))
      .map((object) => ({ ...object, generation: 0 }));
  }

  #isSelected({ namespace }: ManifestObject): boolean {
    return this.#namespaces.length === 0 || this.#namespaces.includes(namespace);
  }

  /** The current version of an object. */
  find(id: string): ManifestObject | undefined {
    return this.#versions.get(id)?.object;
  }

  /** Runs must not overlap. */
  *update(texts: FolderTexts): Steps<FolderObjects> {
    this.#reads += 1;
    const before = this.#files;
    this.#files = yield* this.#parseAll(texts);
    this.#isFirstUpdate = false;
    const selected = selectObjects([...this.#files.values()], this.#namespaces);
    const kept = this.#findKept(selected.objects);
    const versions = new Map<string, Version>();
    for (const object of [...selected.objects, ...kept]) {
      versions.set(object.id, this.#toVersion(object));
      yield;
    }
    // A folder without objects since the start may be a volume that is not mounted.
    const isMounted = this.#versions.size > 0 || versions.size > 0;
    this.#versions = versions;
    this.#policies = [...versions.values()].map(({ object }) => object).filter(isPolicy);
    if (isMounted) this.#forgetMissing();
    const found = [...versions.values()].map(({ object, generation }): ConfigObject => {
      const stored = this.#stored.get(object.id);
      return { ...object, generation, ...(stored && { stored }) };
    });
    return {
      objects: found.filter((object) => !isPolicy(object)),
      policies: found.filter(isPolicy),
      problems: [...texts.problems, ...selected.problems],
      unread: [...this.#files.values()].flatMap(({ unread }) => unread ?? []),
      others: [...this.#files].flatMap(([source, file]) => (before.get(source) === file ? [] : file.others)),
      kept: kept.map(({ id }) => id),
    };
  }

  /** A stored version must not come back into force when its object is created again. */
  #forgetMissing(): void {
    for (const id of this.#stored.keys()) if (!this.#versions.has(id)) this.#stored.delete(id);
  }

  /**
   * A missing policy may have moved to a file that cannot be read or understood. It stays, because
   * without its policy a host may be open.
   */
  #findKept(objects: readonly ManifestObject[]): readonly ManifestObject[] {
    if (![...this.#files.values()].some(({ isIncomplete }) => isIncomplete)) return [];
    const found = new Set(objects.map(({ id }) => id));
    return this.#policies.filter((object) => !found.has(object.id) && this.#isSelected(object));
  }

  *#parseAll({ files: texts, problems: unread }: FolderTexts): Steps<Map<string, FileContents>> {
    const files = new Map<string, FileContents>();
    for (const file of texts) files.set(file.source, yield* this.#parseFile(file));
    for (const problem of unread) {
      const { source } = problem;
      const known = this.#files.get(source);
      const missing = this.#findUnread(known, { ...problem, namesPolicies: false });
      // The text is removed, so that the next one counts as changed.
      const text = undefined;
      files.set(source, {
        ...(known ?? noContents),
        ...{ text, problems: [], isIncomplete: true, unread: missing },
      });
    }
    return files;
  }

  *#parseFile(file: TextFile): Steps<FileContents> {
    const known = this.#files.get(file.source);
    if (known?.text === file.text) return known;
    const parsed = yield* parseManifests(file);
    const { objects, others } = known ?? noContents;
    const namesPolicies = file.text.includes(policyGroup) || file.text.includes(policyKind);
    const findUnread = (problem: SourceProblem | undefined) =>
      problem && this.#findUnread(known, { ...problem, namesPolicies });
    if (parsed.ok) {
      const { unknown, ...contents } = classify(parsed.manifests, objects);
      const isIncomplete = unknown !== undefined;
      return { text: file.text, ...contents, isIncomplete, unread: findUnread(unknown) };
    }
    return {
      text: file.text,
      objects,
      others,
      problems: [parsed.problem],
      isIncomplete: true,
      unread: findUnread(parsed.problem),
    };
  }

  /** A file that is new since the first update had no policies in force; stored ones are known. */
  #findUnread(known: FileContents | undefined, file: UnreadFile): UnreadFile | undefined {
    const isUnread = known === undefined ? this.#isFirstUpdate : known.unread !== undefined;
    return isUnread ? file : undefined;
  }

  /** The generation is the number of the read that found a change, so that it always grows. */
  #toVersion(object: ManifestObject): Version {
    const known = this.#versions.get(object.id);
    if (known?.object === object) return known;
    const content = JSON.stringify(object.manifest);
    return { object, content, generation: known?.content === content ? known.generation : this.#reads };
  }
}

/** An invalid manifest keeps the previous version of its object. */
function classify(
  manifests: readonly Manifest[],
  before: readonly ManifestObject[],
): Pick<FileContents, 'objects' | 'others' | 'problems'> & { readonly unknown: SourceProblem | undefined } {
  const known = new Map(before.map((object) => [object.id, object]));
  const objects: ManifestObject[] = [];
  const others: OtherManifest[] = [];
  const problems: SourceProblem[] = [];
  /** Why an object is not served of which the file has no earlier version: it may be any policy. */
  let unknown: SourceProblem | undefined;
  for (const manifest of manifests) {
    const read = readManifest(manifest);
    if (read.type === 'other') others.push({ label: manifest.label, kind: read.kind });
    else if (read.type === 'object' && manifest.ambiguous.length === 0) objects.push(read.object);
    else {
      problems.push(...(read.type === 'problem' ? [read.problem] : manifest.ambiguous));
      const id = read.type === 'problem' ? read.id : read.object.id;
      const kept = id === undefined ? undefined : known.get(id);
      if (kept !== undefined) objects.push(kept);
      else unknown ??= problems.at(-1);
    }
  }
  return { objects, others, problems, unknown };
}

/** The objects of the selected namespaces, and of several with the same name the first. */
function selectObjects(
  files: readonly FileContents[],
  namespaces: readonly string[],
): { readonly objects: readonly ManifestObject[]; readonly problems: readonly SourceProblem[] } {
  const selected = new Map<string, ManifestObject>();
  const problems = files.flatMap((file) => file.problems);
  const all = files.flatMap((file) => file.objects).sort((a, b) => compareText(a.order, b.order));
  for (const object of all) {
    if (namespaces.length > 0 && !namespaces.includes(object.namespace)) continue;
    const first = selected.get(object.id);
    if (first === undefined) selected.set(object.id, object);
    else
      problems.push({
        source: object.label,
        message: `${object.id} is already in ${first.label}: rename one`,
      });
  }
  return { objects: [...selected.values()], problems };
}
