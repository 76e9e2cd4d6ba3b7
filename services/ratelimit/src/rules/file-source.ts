import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { runInSlices } from '@tollgate/kit/steps';
import { type ReadTextFilesOptions, readTextFiles, type TextFileNotice } from '@tollgate/kit/text-files';
import { loadYamlSteps } from '@tollgate/rules/load-yaml';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleLoad, RuleSource } from './rule-store.ts';

/** Where rule files are and how they are put together. */
export interface LoadRuleFilesOptions extends ReadTextFilesOptions {
  readonly mergeDomains: boolean;
}

/** 100,000 rules take most of a second, and Envoy gives up on an answer after 20 ms unless told otherwise. */
const sliceMs = 5;

/**
 * Reads and validates all rule files of a directory; every problem of every file is reported. Requests are answered
 * meanwhile.
 */
export async function loadRuleFiles(options: LoadRuleFilesOptions): Promise<RuleLoad> {
  const { files, ...notices } = await readTextFiles(options);
  const problems = notices.problems.map(({ source, message }) =>
    asProblem({ source, message: `error loading config file: ${message}` }),
  );
  const warnings = notices.warnings.map(asProblem);
  const loaded = await runInSlices(loadYamlSteps(files, { mergeDomains: options.mergeDomains }), { sliceMs });
  if (!loaded.ok) {
    return { ok: false, problems: [...problems, ...loaded.problems] };
  }
  return problems.length === 0
    ? { ok: true, rules: loaded.rules, warnings: [...warnings, ...loaded.warnings] }
    : { ok: false, problems };
}

const asProblem = ({ source, message }: TextFileNotice): RuleProblem => ({ source, path: '', message });

/** Where rule files are, by the RUNTIME_* settings. */
export interface FileRuleSourceOptions {
  readonly root: string;
  readonly subdirectory: string;
  readonly appDirectory: string;
  readonly ignoreDotFiles: boolean;
  /** True: reload when `root`, a symbolic link, points elsewhere. False: reload when anything in the directory changes. */
  readonly watchRoot: boolean;
  readonly mergeDomains: boolean;
}

/** Makes the source that reads YAML files and follows their changes. A directory that is not there is a start error. */
export function createFileRuleSource(options: FileRuleSourceOptions, logger: Logger): RuleSource {
  const labelRoot = join(options.root, options.subdirectory);
  const directory = join(labelRoot, options.appDirectory);
  const { ignoreDotFiles, mergeDomains, watchRoot } = options;
  let watch: FileWatch | undefined;
  let loading: Promise<void> = Promise.resolve();
  let closed = false;

  /** An attempt that throws is a bug or a lack of memory; the rules in force stay, and the next attempt is made. */
  async function attempt(): Promise<RuleLoad> {
    try {
      return await loadRuleFiles({ directory, labelRoot, ignoreDotFiles, mergeDomains });
    } catch (error) {
      logger.error({ err: error, directory }, 'rule files not loaded');
      return {
        ok: false,
        problems: [{ source: directory, path: '', message: 'error loading config files' }],
      };
    }
  }

  async function loadAfter(before: Promise<void>, onLoad: (load: RuleLoad) => void): Promise<void> {
    // Whoever waits for that load hears of its failure.
    await before.catch(() => undefined);
    if (closed) return;
    const load = await attempt();
    if (!closed) onLoad(load);
  }

  /** Loads once those before have ended, so that they are handed over in order. */
  function loadNext(onLoad: (load: RuleLoad) => void): Promise<void> {
    loading = loadAfter(loading, onLoad);
    return loading;
  }

  return {
    async start(onLoad) {
      await requireDirectory(directory, options);
      if (watchRoot) await warnUnlessLink(options.root, logger);
      // The watch comes first: what changes while the first load runs is loaded once more.
      watch = await watchFiles({
        paths: [watchRoot ? options.root : directory],
        linksOnly: watchRoot,
        onChange: () => loadNext(onLoad),
        logger,
      });
      if (closed) watch.close();
      await loadNext(onLoad);
    },
    async close() {
      closed = true;
      watch?.close();
      await loading.catch(() => undefined);
    },
  };
}

async function warnUnlessLink(root: string, logger: Logger): Promise<void> {
  if (!(await lstat(root)).isSymbolicLink()) {
    logger.warn(
      { root },
      'RUNTIME_ROOT is no symbolic link, so changes to its files are not seen: set RUNTIME_WATCH_ROOT=false',
    );
  }
}

async function requireDirectory(directory: string, options: FileRuleSourceOptions): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const problem = found instanceof Error ? `cannot be read (${found.code})` : 'is not a directory';
  throw new Error(
    `the rule directory ${directory} ${problem}: it is made of RUNTIME_ROOT (${options.root}), ` +
      `RUNTIME_SUBDIRECTORY (${options.subdirectory || 'empty'}) and RUNTIME_APPDIRECTORY (${options.appDirectory || 'empty'})`,
  );
}
