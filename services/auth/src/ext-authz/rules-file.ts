import { type FileWatch, type WatchFilesOptions, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import { defaultRules, parseRouteRules, type RouteRules, routeRuleWarnings } from './route-rules.ts';
import type { FileProblem } from './yaml-fields.ts';

/** The rules, or all problems of the file as `<file>:<line>:<column>: <message>`. */
export type LoadedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly string[] };

/** The size limit of a ConfigMap. */
const maxBytes = 1024 * 1024;
/** All problems are logged in one line. */
const maxProblems = 20;

export async function loadRouteRules(file: string): Promise<LoadedRouteRules> {
  let text: string;
  try {
    text = await readTextFile(file, maxBytes);
  } catch (error) {
    return fail(file, [
      { position: undefined, message: error instanceof Error ? error.message : String(error) },
    ]);
  }
  const parsed = parseRouteRules(text);
  return parsed.ok ? parsed : fail(file, parsed.problems);
}

function fail(file: string, problems: readonly FileProblem[]): LoadedRouteRules {
  const lines = problems
    .slice(0, maxProblems)
    .map(
      ({ position, message }) =>
        `${file}${position ? `:${position.line}:${position.column}` : ''}: ${message}`,
    );
  const omitted = problems.length - lines.length;
  return { ok: false, problems: omitted > 0 ? [...lines, `${file}: and ${omitted} more`] : lines };
}

interface RulesFileOptions extends Pick<WatchFilesOptions, 'debounceMs' | 'pollMs'> {
  readonly logger: Logger;
  /** Called after each attempt to load the file. */
  readonly onLoad?: ((succeeded: boolean) => void) | undefined;
}

/**
 * The route rules of a file, which is reloaded when it changes. An invalid change is logged and
 * ignored.
 */
export class RulesFile {
  readonly #file: string;
  readonly #options: RulesFileOptions;
  #rules: RouteRules = defaultRules;
  #watch: FileWatch | undefined;

  private constructor(file: string, options: RulesFileOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** @throws Error with all problems if the file is invalid. */
  static async open(file: string, options: RulesFileOptions): Promise<RulesFile> {
    const { logger, onLoad: _, ...watchOptions } = options;
    const rules = new RulesFile(file, options);
    const opened = Promise.withResolvers<void>();
    // Started before the first load, so that no change is missed. Reloads wait for the first load,
    // which could otherwise overwrite a newer one.
    const watch = await watchFiles({
      ...watchOptions,
      logger,
      paths: [file],
      onChange: async () => {
        await opened.promise;
        await rules.#reload();
      },
    });
    rules.#watch = watch;
    const first = await rules.#load();
    if (!first.ok) {
      watch.close();
      throw new Error(`invalid route rules:\n${first.problems.join('\n')}`);
    }
    opened.resolve();
    return rules;
  }

  /** The last good rules. */
  get current(): RouteRules {
    return this.#rules;
  }

  close(): void {
    this.#watch?.close();
  }

  async #reload(): Promise<void> {
    const { logger } = this.#options;
    const file = this.#file;
    const loaded = await this.#load();
    if (loaded.ok) logger.info({ file, routes: loaded.rules.routes.length }, 'reloaded route rules');
    else
      logger.error(
        { file, problems: loaded.problems },
        'failed to reload route rules, keeping the last good ones',
      );
  }

  async #load(): Promise<LoadedRouteRules> {
    const { logger, onLoad } = this.#options;
    const loaded = await loadRouteRules(this.#file);
    onLoad?.(loaded.ok);
    if (!loaded.ok) return loaded;
    this.#rules = loaded.rules;
    for (const warning of routeRuleWarnings(loaded.rules))
      logger.warn({ file: this.#file, warning }, 'route rules may protect less than intended');
    return loaded;
  }
}
