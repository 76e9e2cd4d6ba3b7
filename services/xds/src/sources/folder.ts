import { stat } from 'node:fs/promises';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { runInSlices, type Steps } from '@tollgate/kit/steps';
import { compareText } from '@tollgate/kit/text';
import { type FolderTexts, readTextFiles, type TextFile } from '@tollgate/kit/text-files';
import type { XdsMetrics } from '../metrics.ts';
import { type Manifest, type ManifestObject, parseManifests, readManifest } from './manifests.ts';
import type { ConfigObject, ResourceSource, SourceEvent, SourceProblem } from './source.ts';

/** The objects of a folder at one moment. */
interface FolderObjects {
  readonly objects: readonly ConfigObject[];
  readonly problems: readonly SourceProblem[];
  /** Manifests of other kinds, in files that have changed. */
  readonly others: readonly OtherManifest[];
}

/** A manifest that is none of ours. */
interface OtherManifest {
  readonly label: string;
  readonly kind: string;
}

/** What a folder has held so far. */
export interface FolderContents {
  /** Takes note of the texts of the folder. In steps; one run at a time. */
  update(texts: FolderTexts): Steps<FolderObjects>;
}

/** Makes contents of nothing. With `namespaces`, objects of others are left out. */
export function createFolderContents(namespaces: readonly string[]): FolderContents {
  let files = new Map<string, FileContents>();
  let versions = new Map<string, Version>();
  let reading = 0;

  /** The file as it was read last, if nothing of it has changed; one that cannot be parsed keeps what it had. */
  function* readFile(file: TextFile): Steps<FileContents> {
    const known = files.get(file.source);
    if (known?.text === file.text) return known;
    const parsed = yield* parseManifests(file);
    const { objects, others } = known ?? nothing;
    if (parsed.ok) return { text: file.text, ...sortOut(parsed.manifests, objects) };
    return { text: file.text, objects, others, problems: [parsed.problem] };
  }

  function* readAll({ files: texts, problems: unread }: FolderTexts): Steps<Map<string, FileContents>> {
    const read = new Map<string, FileContents>();
    for (const file of texts) read.set(file.source, yield* readFile(file));
    for (const { source } of unread) {
      const known = files.get(source);
      // Without a text: whatever it reads next is new.
      if (known !== undefined) read.set(source, { ...known, text: undefined, problems: [] });
    }
    return read;
  }

  /** A generation is the number of the reading that found the object different: it grows whatever happens between. */
  function versionOf(object: ManifestObject): Version {
    const known = versions.get(object.id);
    if (known?.object === object) return known;
    const content = JSON.stringify(object.manifest);
    return { object, content, generation: known?.content === content ? known.generation : reading };
  }

  return {
    *update(texts) {
      reading += 1;
      const before = files;
      files = yield* readAll(texts);
      const chosen = choose([...files.values()], namespaces);
      const next = new Map<string, Version>();
      for (const object of chosen.objects) {
        next.set(object.id, versionOf(object));
        yield;
      }
      versions = next;
      return {
        objects: [...versions.values()].map(({ object, generation }) => ({ ...object, generation })),
        problems: [...texts.problems, ...chosen.problems],
        others: [...files].flatMap(([source, file]) => (before.get(source) === file ? [] : file.others)),
      };
    },
  };
}

interface FileContents {
  /** Undefined when it could not be read: what was read before stays. */
  readonly text: string | undefined;
  readonly objects: readonly ManifestObject[];
  readonly others: readonly OtherManifest[];
  readonly problems: readonly SourceProblem[];
}

interface Version {
  readonly object: ManifestObject;
  readonly content: string;
  readonly generation: number;
}

const nothing: Omit<FileContents, 'text'> = { objects: [], others: [], problems: [] };

/** What stands for an object and cannot be taken for it leaves the object as it was `before`. */
function sortOut(
  manifests: readonly Manifest[],
  before: readonly ManifestObject[],
): Omit<FileContents, 'text'> {
  const known = new Map(before.map((object) => [object.id, object]));
  const objects: ManifestObject[] = [];
  const others: OtherManifest[] = [];
  const problems: SourceProblem[] = [];
  for (const manifest of manifests) {
    const read = readManifest(manifest);
    if (read.type === 'other') others.push({ label: manifest.label, kind: read.kind });
    else if (read.type === 'object' && manifest.ambiguous.length === 0) objects.push(read.object);
    else {
      problems.push(...(read.type === 'problem' ? [read.problem] : manifest.ambiguous));
      const id = read.type === 'problem' ? read.id : read.object.id;
      const kept = id === undefined ? undefined : known.get(id);
      if (kept !== undefined) objects.push(kept);
    }
  }
  return { objects, others, problems };
}

/** The objects that count: of the wanted namespaces, and the first of each name. */
function choose(
  files: readonly FileContents[],
  namespaces: readonly string[],
): { readonly objects: readonly ManifestObject[]; readonly problems: readonly SourceProblem[] } {
  const chosen = new Map<string, ManifestObject>();
  const problems = files.flatMap((file) => file.problems);
  const all = files.flatMap((file) => file.objects).sort((a, b) => compareText(a.order, b.order));
  for (const object of all) {
    if (namespaces.length > 0 && !namespaces.includes(object.namespace)) continue;
    const first = chosen.get(object.id);
    if (first === undefined) chosen.set(object.id, object);
    else
      problems.push({
        source: object.label,
        message: `${object.id} is already in ${first.label}: rename one`,
      });
  }
  return { objects: [...chosen.values()], problems };
}

/** Which folder, and what of it counts. */
export interface FolderSourceOptions {
  readonly folder: string;
  /** Namespaces whose objects count; all when empty. */
  readonly namespaces: readonly string[];
}

/** What the source takes. */
export interface FolderSourceDeps {
  readonly logger: Logger;
  readonly metrics?: Pick<XdsMetrics, 'relists' | 'sourceErrors'>;
}

/** Which files hold manifests; others (a README, a backup) may lie beside them. */
export const manifestFiles = { ignoreDotFiles: true, extensions: ['.yaml', '.yml', '.json'] };

/** Streams and health checks have their turn this often while a large folder is read. */
const sliceMs = 5;

/** Lines of one reading about manifests of other kinds. */
const maxLoggedOthers = 20;

/**
 * Makes the source that reads manifests from the files of a folder and follows their changes. Every reading is told as a
 * whole; what has not changed keeps its generation.
 */
export function createFolderSource(
  { folder: directory, namespaces }: FolderSourceOptions,
  { logger, metrics }: FolderSourceDeps,
): ResourceSource {
  const contents = createFolderContents(namespaces);
  let watch: FileWatch | undefined;
  let reading: Promise<void> = Promise.resolve();
  let closed = false;
  /** The last one told; what it says stays true of a folder that cannot be read. */
  let told: SourceEvent & { type: 'replaced' } = { type: 'replaced', objects: [], problems: [] };

  async function read(): Promise<typeof told> {
    const texts = await readTextFiles({ directory, labelRoot: directory, ...manifestFiles });
    const gone = texts.problems.find(({ source }) => source === directory);
    // Otherwise a volume that is away for a moment would lift every limit.
    if (gone !== undefined) {
      metrics?.sourceErrors.inc({ operation: 'list' });
      return { ...told, problems: [{ ...gone, message: `cannot be read: ${gone.message}` }] };
    }
    metrics?.relists.inc();
    metrics?.sourceErrors.inc({ operation: 'read' }, texts.problems.length);
    for (const { source, message } of texts.warnings) logger.warn({ path: source }, message);
    const { objects, problems, others } = await runInSlices(contents.update(texts), { sliceMs });
    logOthers(others, logger);
    return { type: 'replaced', objects, problems };
  }

  async function readAfter(before: Promise<void>, onEvent: (event: SourceEvent) => void): Promise<void> {
    // Whoever waits for that reading hears of its failure.
    await before.catch(() => undefined);
    if (closed) return;
    told = await read();
    if (!closed) onEvent(told);
  }

  /** Reads once those before have ended, so that they are told in order. */
  function readNext(onEvent: (event: SourceEvent) => void): Promise<void> {
    reading = readAfter(reading, onEvent);
    return reading;
  }

  return {
    async start(onEvent) {
      await requireDirectory(directory);
      // The watch comes first: what changes while the first reading runs is read once more.
      watch = await watchFiles({ paths: [directory], onChange: () => readNext(onEvent), logger });
      if (closed) watch.close();
      await readNext(onEvent);
    },
    async close() {
      closed = true;
      watch?.close();
      await reading.catch(() => undefined);
    },
  };
}

async function requireDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const problem = found instanceof Error ? `cannot be read (${found.code})` : 'is not a directory';
  throw new Error(`the folder of manifests ${directory} ${problem}: set XDS_FOLDER to one that is there`);
}

function logOthers(others: readonly OtherManifest[], logger: Logger): void {
  for (const { label, kind } of others.slice(0, maxLoggedOthers))
    logger.info({ file: label, kind }, 'manifest of another kind passed over');
  const left = others.length - maxLoggedOthers;
  if (left > 0) logger.info({ manifests: left }, 'more manifests of other kinds passed over');
}
