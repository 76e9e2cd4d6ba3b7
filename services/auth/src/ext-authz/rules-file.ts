import { type WatchFilesOptions, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import { parseRouteRules, type RouteRules, routeRuleWarnings } from './route-rules.ts';
import type { FileProblem } from './yaml-fields.ts';

/** Rules, or everything that is wrong with the file: `<file>:<line>:<column>: <message>`, one each. */
export type LoadedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Rules that follow their file. */
export interface WatchedRouteRules {
  /** The last good rules. */
  current(): RouteRules;
  close(): void;
}

/** Longest file: what a ConfigMap may hold. */
const maxBytes = 1024 * 1024;

/** More of them say nothing new, and would be one line of a log. */
const mostProblems = 20;

/** Reads the rules of a file. */
export async function loadRouteRules(file: string): Promise<LoadedRouteRules> {
  let text: string;
  try {
    text = await readTextFile(file, maxBytes);
  } catch (error) {
    return failed(file, [
      { position: undefined, message: error instanceof Error ? error.message : String(error) },
    ]);
  }
  const parsed = parseRouteRules(text);
  return parsed.ok ? parsed : failed(file, parsed.problems);
}

/**
 * Reads the rules of a file and follows its changes, also those of a mounted ConfigMap. A bad file later on is logged, and the last good
 * rules stay.
 *
 * @throws Error with everything that is wrong when the file is bad at the start.
 */
export async function watchRouteRules(
  file: string,
  deps: Pick<WatchFilesOptions, 'debounceMs' | 'pollMs'> & {
    readonly logger: Logger;
    /** Told of each attempt to read the file, that of the start included. */
    readonly onAttempt?: (succeeded: boolean) => void;
  },
): Promise<WatchedRouteRules> {
  const { logger, onAttempt } = deps;
  const started = Promise.withResolvers<void>();
  let current: RouteRules;

  async function attempt(): Promise<LoadedRouteRules> {
    const loaded = await loadRouteRules(file);
    onAttempt?.(loaded.ok);
    if (!loaded.ok) return loaded;
    current = loaded.rules;
    for (const warning of routeRuleWarnings(loaded.rules)) logger.warn({ file, warning }, 'rules of routes');
    return loaded;
  }

  async function reload(): Promise<void> {
    // Else a slow first attempt could end last, with what was there before the change.
    await started.promise;
    const loaded = await attempt();
    if (loaded.ok) logger.info({ file, routes: loaded.rules.routes.length }, 'rules of routes reloaded');
    else
      logger.error(
        { file, problems: loaded.problems },
        'new rules of routes not used, the last good ones stay',
      );
  }

  // The watch first: a file that changes while it is read is read again.
  const watch = await watchFiles({ ...deps, paths: [file], onChange: reload });
  const first = await attempt();
  if (!first.ok) {
    watch.close();
    throw new Error(`the rules of routes cannot be used:\n${first.problems.join('\n')}`);
  }
  current = first.rules;
  started.resolve();
  return { current: () => current, close: watch.close };
}

function failed(file: string, problems: readonly FileProblem[]): LoadedRouteRules {
  const lines = problems
    .slice(0, mostProblems)
    .map(
      ({ position, message }) =>
        `${file}${position ? `:${position.line}:${position.column}` : ''}: ${message}`,
    );
  const left = problems.length - lines.length;
  return { ok: false, problems: left > 0 ? [...lines, `${file}: and ${left} more`] : lines };
}
