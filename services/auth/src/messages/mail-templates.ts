import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import type { Metrics } from '../metrics.ts';
import { fetchText } from '../outbound/fetch.ts';
import { TemplateError } from '../templates/syntax.ts';
import { parseTemplate, type Template } from '../templates/template.ts';
import { builtInMail } from './built-in-mails.ts';
import type { MailSource } from './mail-sources.ts';

const fetchTimeoutMs = 10_000;
/** Mail programs cut off mails at about a tenth of this. */
const maxTemplateBytes = 1024 * 1024;
/** Age at which a template is fetched again. */
const freshMs = 10 * 60_000;
/** Pause after a failed fetch. */
const retryMs = 10_000;

interface CachedTemplate {
  readonly template: Template | undefined;
  readonly refreshAtMs: number;
  /** Why the last fetch failed. */
  readonly error?: unknown;
}

interface MailTemplatesOptions {
  readonly settings: Pick<Settings, 'siteUrl' | 'mailerTemplatePrivateHosts' | 'pagesColor'>;
  /** Sources of templates that are fetched at the start. */
  readonly sources: readonly MailSource[];
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  /** Default: `fetchText` with the limits of templates. */
  readonly fetch?: (url: URL) => Promise<string>;
}

/**
 * Bodies of mails. Configured templates are fetched at start and cached; while a stale one is used,
 * it is refreshed in the background. A template that is unavailable or invalid is replaced by its
 * last good version, or by the built-in text, and the failure is logged and counted.
 */
export class MailTemplates implements LifecycleComponent {
  readonly name = 'mail templates';
  readonly #options: MailTemplatesOptions;
  readonly #fetch: (url: URL) => Promise<string>;
  /** Templates by kind and language. */
  readonly #builtIn = new Map<string, Template>();
  /** Templates by location. */
  readonly #cache = new Map<string, CachedTemplate>();
  readonly #fetching = new Map<string, Promise<CachedTemplate>>();

  constructor(options: MailTemplatesOptions) {
    const privateHosts = options.settings.mailerTemplatePrivateHosts;
    const limits = { privateHosts, timeoutMs: fetchTimeoutMs, maxBytes: maxTemplateBytes };
    this.#options = options;
    this.#fetch = options.fetch ?? ((url) => fetchText(url, limits));
  }

  /**
   * Fetches the templates of `sources`. Unavailable ones are fetched again when they are needed.
   *
   * @throws Error naming each template that cannot be parsed, with its line.
   */
  async start(): Promise<void> {
    const configured = this.#options.sources.filter(({ location }) => location !== '');
    const attempts = configured.map(async (source) => {
      const { error } = await this.#refresh(source);
      const { kind, location } = source;
      return error instanceof TemplateError ? [`${kind} (${location}): ${error.message}`] : [];
    });
    const problems = new Set((await Promise.all(attempts)).flat());
    if (problems.size > 0) throw new Error(`invalid mail templates: ${[...problems].join('; ')}`);
  }

  /** Never rejects. */
  async get(source: MailSource): Promise<Template> {
    if (source.location === '') return this.getBuiltIn(source);
    const cached = this.#cache.get(source.location);
    if (cached !== undefined && this.#options.nowMs() < cached.refreshAtMs)
      return cached.template ?? this.getBuiltIn(source);
    const refreshed = this.#refresh(source);
    return cached?.template ?? (await refreshed).template ?? this.getBuiltIn(source);
  }

  getBuiltIn({ kind, builtIn }: MailSource): Template {
    const key = `${kind} ${builtIn}`;
    const { pagesColor } = this.#options.settings;
    const template = this.#builtIn.get(key) ?? parseTemplate(builtInMail(kind, builtIn, pagesColor), 'html');
    this.#builtIn.set(key, template);
    return template;
  }

  /** Concurrent callers share one fetch. */
  async #refresh(source: MailSource): Promise<CachedTemplate> {
    const { location } = source;
    const running = this.#fetching.get(location);
    if (running !== undefined) return running;
    const fetching = this.#fetchTemplate(source);
    this.#fetching.set(location, fetching);
    const cached = await fetching;
    this.#cache.set(location, cached);
    this.#fetching.delete(location);
    return cached;
  }

  async #fetchTemplate({ kind, location }: MailSource): Promise<CachedTemplate> {
    const { metrics, logger, nowMs } = this.#options;
    const previous = this.#cache.get(location)?.template;
    try {
      const template = parseTemplate(await this.#fetch(this.#resolve(location)), 'html');
      return { template, refreshAtMs: nowMs() + freshMs };
    } catch (error) {
      const reason = error instanceof TemplateError ? 'invalid' : 'unavailable';
      const used = previous === undefined ? 'the built-in template' : 'the last good version';
      metrics.mailTemplateFailures.inc({ reason });
      logger.error({ err: error, kind, location, used }, `mail template ${reason}`);
      return { template: previous, refreshAtMs: nowMs() + retryMs, error };
    }
  }

  /** Paths are appended to SITE_URL, as in GoTrue, rather than resolved against it. */
  #resolve(location: string): URL {
    if (/^https?:/i.test(location)) return new URL(location);
    const { siteUrl } = this.#options.settings;
    return new URL(`${siteUrl.replace(/\/$/, '')}/${location.replace(/^\//, '')}`);
  }
}
