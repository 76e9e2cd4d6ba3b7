import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { type ReadTextFilesOptions, readTextFiles, type TextFileNotice } from '@tollgate/kit/text-files';
import { runInSlices } from '@tollgate/kit/time';
import { loadRuleFilesInSteps } from '@tollgate/rules/load-rule-files';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { Settings } from '../config/settings.ts';
import { describeNotAtomic } from '../config/stores.ts';
import type { RuleLoad, RuleSource } from './rule-store.ts';

export interface FileSourceOptions {
  readonly root: string;
  readonly subdirectory: string;
  /** Name in messages; default RUNTIME_SUBDIRECTORY. */
  readonly subdirectorySetting?: string;
  readonly appDirectory: string;
  readonly ignoreDotFiles: boolean;
  /**
   * True: reload when the symbolic link `root` changes. False: reload when anything in the
   * directory changes.
   */
  readonly watchRoot: boolean;
  readonly mergeDomains: boolean;
  readonly forMemcached: boolean;
  readonly notAtomic?: string | undefined;
  readonly calendarMonths?: boolean | undefined;
}

/** CONFIG_TYPE=FILE. */
export function createFileSource(settings: Settings, { logger }: { readonly logger: Logger }): FileSource {
  return new FileSource(getFileSourceOptions(settings), logger);
}

/** The rules on trial of CANDIDATE_RUNTIME_SUBDIRECTORY. */
export function createCandidateSource(
  settings: Settings,
  { logger }: { readonly logger: Logger },
): FileSource {
  const subdirectory = settings.candidateRuntimeSubdirectory;
  const subdirectorySetting = 'CANDIDATE_RUNTIME_SUBDIRECTORY';
  return new FileSource({ ...getFileSourceOptions(settings), subdirectory, subdirectorySetting }, logger);
}

function getFileSourceOptions(settings: Settings): FileSourceOptions {
  return {
    root: settings.runtimeRoot,
    subdirectory: settings.runtimeSubdirectory,
    appDirectory: settings.runtimeAppdirectory,
    ignoreDotFiles: settings.runtimeIgnoreDotFiles,
    watchRoot: settings.runtimeWatchRoot,
    mergeDomains: settings.mergeDomainConfig,
    forMemcached: settings.backendType === 'memcache',
    notAtomic: describeNotAtomic(settings),
    calendarMonths: settings.useCalendarMonths,
  };
}

/** Reads YAML files and follows their changes. A missing directory is an error of `start`. */
export class FileSource implements RuleSource {
  readonly #options: FileSourceOptions;
  readonly #logger: Logger;
  readonly #labelRoot: string;
  readonly #directory: string;
  #watch: FileWatch | undefined;
  #loading: Promise<void> = Promise.resolve();
  #closed: boolean = false;

  constructor(options: FileSourceOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
    this.#labelRoot = join(options.root, options.subdirectory);
    this.#directory = join(this.#labelRoot, options.appDirectory);
  }

  async start(onLoad: (load: RuleLoad) => void): Promise<void> {
    const { root, watchRoot } = this.#options;
    await requireDirectory(this.#directory, this.#options);
    if (watchRoot) await warnUnlessLink(root, this.#logger);
    // The watch comes first: changes during the first load are loaded once more.
    this.#watch = await watchFiles({
      paths: [watchRoot ? root : this.#directory],
      linksOnly: watchRoot,
      onChange: () => this.#loadNext(onLoad),
      logger: this.#logger,
    });
    if (this.#closed) this.#watch.close();
    await this.#loadNext(onLoad);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch?.close();
    await this.#loading.catch(() => undefined);
  }

  /** Loads once the previous loads have ended, so that `onLoad` is called in order. */
  #loadNext(onLoad: (load: RuleLoad) => void): Promise<void> {
    this.#loading = this.#loadAfter(this.#loading, onLoad);
    return this.#loading;
  }

  async #loadAfter(previous: Promise<void>, onLoad: (load: RuleLoad) => void): Promise<void> {
    // The caller of that load handles its failure.
    await previous.catch(() => undefined);
    if (this.#closed) return;
    const load = await this.#load();
    if (!this.#closed) onLoad(load);
  }

  /**
   * An exception here is a bug or a lack of memory; the active rules stay, and the next change is
   * loaded.
   */
  async #load(): Promise<RuleLoad> {
    const { ignoreDotFiles, mergeDomains, forMemcached, notAtomic, calendarMonths } = this.#options;
    const directory = this.#directory;
    try {
      const labelRoot = this.#labelRoot;
      const stores = { forMemcached, notAtomic, calendarMonths };
      return await loadRuleFiles({ directory, labelRoot, ignoreDotFiles, mergeDomains, ...stores });
    } catch (error) {
      this.#logger.error({ err: error, directory }, 'rule files not loaded');
      return {
        ok: false,
        problems: [{ source: directory, path: '', message: 'error loading config files' }],
      };
    }
  }
}

async function warnUnlessLink(root: string, logger: Logger): Promise<void> {
  if (!(await lstat(root)).isSymbolicLink()) {
    logger.warn(
      { root },
      'RUNTIME_ROOT is not a symbolic link, so changes are not detected: set RUNTIME_WATCH_ROOT=false',
    );
  }
}

async function requireDirectory(directory: string, options: FileSourceOptions): Promise<void> {
  const { root, subdirectory, subdirectorySetting = 'RUNTIME_SUBDIRECTORY', appDirectory } = options;
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const problem = found instanceof Error ? `cannot be read (${found.code})` : 'is not a directory';
  throw new Error(
    `the rule directory ${directory} ${problem}: it is made of RUNTIME_ROOT (${root}), ` +
      `${subdirectorySetting} (${subdirectory || 'empty'}) and RUNTIME_APPDIRECTORY (${appDirectory || 'empty'})`,
  );
}

export interface LoadRuleFilesOptions extends ReadTextFilesOptions {
  readonly mergeDomains: boolean;
  readonly forMemcached?: boolean;
  readonly notAtomic?: string | undefined;
  readonly calendarMonths?: boolean | undefined;
}

/** 100,000 rules take most of a second, and Envoy's default timeout is 20 ms. */
const sliceMs = 5;

/**
 * Reads and validates all rule files of a directory and returns all problems. Yields to requests
 * meanwhile.
 */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const { files, ...notices } = await readTextFiles(options);
  const problems = notices.problems.map(({ source, message }) =>
    toProblem({ source, message: `error loading config file: ${message}` }),
  );
  const warnings = notices.warnings.map(toProblem);
  const loaded = await runInSlices(loadRuleFilesInSteps(files, options), { sliceMs });
  if (!loaded.ok) {
    return { ok: false, problems: [...problems, ...loaded.problems] };
  }
  return problems.length === 0
    ? { ok: true, rules: loaded.rules, warnings: [...warnings, ...loaded.warnings] }
    : { ok: false, problems };
}

function toProblem({ source, message }: TextFileNotice): RuleProblem {
  return { source, path: '', message };
}
