import { getErrorMessage } from '@tollgate/kit/errors';
import { type FileWatch, type WatchFilesOptions, watchFiles } from '@tollgate/kit/file-watch';
import type { Logger } from '@tollgate/kit/logger';
import { readTextFile } from '@tollgate/kit/text-files';
import { type Access, authenticated } from '@tollgate/policies/compile/access';
import { type FileProblem, type ParseOptions, parseRouteRules } from '@tollgate/policies/routes-file/parse';
import { defaultRules, hasLimits, type RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { routeRuleWarnings } from '@tollgate/policies/routes-file/warnings';
import { extAuthzSettings } from '../config/ext-authz.ts';

/** The rules, or all problems of the file as `<file>:<line>:<column>: <message>`. */
export type LoadedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Values of SVC_EXT_AUTHZ_DEFAULT_ACCESS. */
const defaultAccesses: Readonly<Record<string, Access>> = {
  authenticated,
  public: { type: 'Public' },
  denied: { type: 'Denied' },
};

/** The access of a setting; undefined if it is empty. */
export const toDefaultAccess = (setting: string): Access | undefined => defaultAccesses[setting];

/** The size limit of a ConfigMap. */
const maxBytes = 1024 * 1024;
/** All problems are logged in one line. */
const maxProblems = 20;

interface LoadOptions extends Omit<ParseOptions, 'defaultAccess'> {
  /** Default access of the settings. */
  readonly defaultAccess?: Access | undefined;
  /** Whether a rate limit service is set. Default false: a file with limits is rejected. */
  readonly canLimit?: boolean;
  /** Whether access policies have limits, too. Default false. */
  readonly hasPolicies?: boolean;
  /** The `iss` of own tokens, which no other issuer may have. Empty: none. */
  readonly tokenIssuer?: string;
}

export async function loadRouteRules(
  file: string,
  { canLimit = false, tokenIssuer = '', defaultAccess: access, ...options }: LoadOptions = {},
): Promise<LoadedRouteRules> {
  let text: string;
  try {
    text = await readTextFile(file, maxBytes);
  } catch (error) {
    return fail(file, [{ position: undefined, message: getErrorMessage(error) }]);
  }
  const setting = extAuthzSettings.extAuthzDefaultAccess.env;
  const parsed = parseRouteRules(text, { ...options, defaultAccess: access && { access, setting } });
  if (!parsed.ok) return fail(file, parsed.problems);
  const problem =
    (canLimit ? undefined : findLimit(parsed.rules)) ?? findOwnIssuer(parsed.rules, tokenIssuer);
  return problem === undefined ? parsed : fail(file, [problem]);
}

/** Tokens of this server would be verified with the keys of the other issuer. */
function findOwnIssuer({ issuers }: RouteRules, tokenIssuer: string): FileProblem | undefined {
  const own = issuers.find(({ definition }) => tokenIssuer !== '' && definition.issuer === tokenIssuer);
  if (own === undefined) return undefined;
  const { name } = own.definition;
  return { position: undefined, message: `the issuer of ${name} is that of this server: ${tokenIssuer}` };
}

function findLimit(rules: RouteRules): FileProblem | undefined {
  if (!hasLimits(rules)) return undefined;
  const route = rules.routes.find(({ limits }) => limits.length > 0);
  const { env } = extAuthzSettings.extAuthzRateLimitAddress;
  return {
    position: rules.policy.fallback.limits.length > 0 ? undefined : route?.position,
    message: `limit requires a rate limit service: set ${env}, or remove limit`,
  };
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

interface RulesFileOptions extends LoadOptions, Pick<WatchFilesOptions, 'debounceMs' | 'pollMs'> {
  readonly logger: Logger;
  /** Called after each attempt to load the file. */
  readonly onLoad?: ((succeeded: boolean) => void) | undefined;
  /** Called with new rules before they are in force. */
  readonly onRules?: ((rules: RouteRules) => void) | undefined;
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
    const { logger, onLoad: _onLoad, onRules: _onRules, ...watchOptions } = options;
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
    const { onLoad, onRules } = this.#options;
    const loaded = await loadRouteRules(this.#file, this.#options);
    onLoad?.(loaded.ok);
    if (!loaded.ok) return loaded;
    onRules?.(loaded.rules);
    this.#rules = loaded.rules;
    logRuleWarnings(loaded.rules, { ...this.#options, file: this.#file });
    return loaded;
  }
}

/**
 * Rules and settings that may protect less than intended. `canLimit`: whether a rate limit service
 * is set.
 */
export function describeRuleWarnings(
  rules: RouteRules,
  { canLimit, hasClients = false }: { readonly canLimit: boolean; readonly hasClients?: boolean },
): string[] {
  const { env } = extAuthzSettings.extAuthzRateLimitAddress;
  const unused = `${env} has no effect: no route has a limit. Add limit to the routes file, or unset it`;
  return [...routeRuleWarnings(rules, { hasClients }), ...(canLimit && !hasLimits(rules) ? [unused] : [])];
}

export function logRuleWarnings(
  rules: RouteRules,
  {
    logger,
    canLimit = false,
    hasPolicies = false,
    hasClients = false,
    file,
  }: LoadOptions & { readonly logger: Logger; readonly file?: string },
): void {
  for (const warning of describeRuleWarnings(rules, { canLimit: canLimit && !hasPolicies, hasClients }))
    logger.warn({ ...(file && { file }), warning }, 'route rules may protect less than intended');
}
