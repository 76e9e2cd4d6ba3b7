import { stat } from 'node:fs/promises';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFiles } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import type { SourceEvent } from '../../domain/config-object.ts';
import type { XdsMetrics } from '../../metrics/xds-metrics.ts';
import type { ResourceSource } from '../../ports/resource-source.ts';
import { createFolderContents, type OtherManifest } from './folder-contents.ts';

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
