import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileWatch, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import type { RuleLoad, RuleSource } from '../ports/rule-source.ts';
import { loadRuleFiles } from './load-rule-files.ts';

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
  let watch: FileWatch | undefined;
  let loading: Promise<void> = Promise.resolve();

  async function load(onLoad: (load: RuleLoad) => void): Promise<void> {
    onLoad(
      await loadRuleFiles({
        directory,
        labelRoot,
        ignoreDotFiles: options.ignoreDotFiles,
        mergeDomains: options.mergeDomains,
      }),
    );
  }

  /** Loads once those before have ended, so that they are handed over in order. */
  function loadNext(onLoad: (load: RuleLoad) => void): Promise<void> {
    loading = loading.then(() => load(onLoad));
    return loading;
  }

  return {
    async start(onLoad) {
      await requireDirectory(directory, options);
      // The watch comes first: what changes while the first load runs is loaded once more.
      watch = await watchFiles({
        paths: [options.watchRoot ? options.root : directory],
        linksOnly: options.watchRoot,
        onChange: () => loadNext(onLoad),
        logger,
      });
      await loadNext(onLoad);
    },
    async close() {
      watch?.close();
      await loading;
    },
  };
}

async function requireDirectory(directory: string, options: FileRuleSourceOptions): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) {
    throw new Error(
      `the rule directory ${directory} cannot be read (${found.code}): it is made of RUNTIME_ROOT (${options.root}), ` +
        `RUNTIME_SUBDIRECTORY (${options.subdirectory || 'empty'}) and RUNTIME_APPDIRECTORY (${options.appDirectory || 'empty'})`,
    );
  }
  if (!found.isDirectory()) {
    throw new Error(`the rule directory ${directory} is not a directory`);
  }
}
