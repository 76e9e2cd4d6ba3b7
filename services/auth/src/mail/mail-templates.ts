import type { Logger } from '@tollgate/kit/logger';
import { type MailKind, mailKinds } from '../settings/mail-text-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { parseTemplate, type Template } from '../templates/template.ts';
import { TemplateError } from '../templates/template-error.ts';
import { builtInTemplates } from './built-in-templates.ts';
import type { CountTemplateFailure } from './count-template-failures.ts';

/** Fetches a text. Rejects when it is unavailable, or its address is not allowed. */
export type FetchText = (url: URL) => Promise<string>;

/** The bodies of mails. */
export interface MailTemplates {
  /**
   * Fetches all templates. One that cannot be reached is fetched again when it is needed.
   *
   * @throws Error naming each template that cannot be parsed, with its line.
   */
  start(): Promise<void>;
  /**
   * The body of a kind. Never rejects: a template that is unavailable or invalid is replaced by its last good version,
   * or by the built-in text when it has none, which is logged as an error and counted.
   */
  bodyOf(kind: MailKind): Promise<Template>;
  builtIn(kind: MailKind): Template;
}

/** What templates need. */
export interface MailTemplatesDeps {
  readonly settings: Pick<Settings, 'siteUrl' | `mailTemplate:${MailKind}`>;
  readonly fetchText: FetchText;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly countFailure: CountTemplateFailure;
}

/** Age at which a template is fetched again. */
const freshMs = 10 * 60_000;
/** Time between a failure and the next attempt. */
const retryMs = 10_000;

interface Cached {
  readonly template: Template | undefined;
  readonly refreshAtMs: number;
  /** Why the last attempt failed. */
  readonly error?: unknown;
}

/** Creates {@link MailTemplates}: fetched at the start and kept; refreshed in the background while the old one is used. */
export function createMailTemplates(deps: MailTemplatesDeps): MailTemplates {
  const { settings, fetchText, logger, nowMs, countFailure } = deps;
  const builtIn = new Map<MailKind, Template>();
  const cache = new Map<MailKind, Cached>();
  const fetching = new Map<MailKind, Promise<Cached>>();

  function builtInOf(kind: MailKind): Template {
    const known = builtIn.get(kind) ?? parseTemplate(builtInTemplates[kind], 'html');
    builtIn.set(kind, known);
    return known;
  }

  async function fetchTemplate(kind: MailKind, location: string): Promise<Cached> {
    const before = cache.get(kind)?.template;
    try {
      const template = parseTemplate(await fetchText(templateUrl(location)), 'html');
      return { template, refreshAtMs: nowMs() + freshMs };
    } catch (error) {
      const reason = error instanceof TemplateError ? 'invalid' : 'unavailable';
      const used = before === undefined ? 'the built-in template' : 'the last good version';
      countFailure(reason);
      logger.error({ err: error, kind, location, used }, `mail template ${reason}`);
      return { template: before, refreshAtMs: nowMs() + retryMs, error };
    }
  }

  /** Paths are added to SITE_URL, as GoTrue does, not resolved against it. */
  function templateUrl(location: string): URL {
    const isUrl = /^https?:/i.test(location);
    return new URL(
      isUrl ? location : `${settings.siteUrl.replace(/\/$/, '')}/${location.replace(/^\//, '')}`,
    );
  }

  /** Concurrent callers share one request. */
  async function refresh(kind: MailKind, location: string): Promise<Cached> {
    const running = fetching.get(kind);
    if (running !== undefined) return running;
    const fetched = fetchTemplate(kind, location);
    fetching.set(kind, fetched);
    const cached = await fetched;
    cache.set(kind, cached);
    fetching.delete(kind);
    return cached;
  }

  return {
    builtIn: builtInOf,
    async start() {
      const attempts = mailKinds.map(async (kind) => {
        const location = settings[`mailTemplate:${kind}`];
        if (location === '') return [];
        const { error } = await refresh(kind, location);
        return error instanceof TemplateError ? [`${kind} (${location}): ${error.message}`] : [];
      });
      const problems = (await Promise.all(attempts)).flat();
      if (problems.length > 0) throw new Error(`invalid mail templates: ${problems.join('; ')}`);
    },
    async bodyOf(kind) {
      const location = settings[`mailTemplate:${kind}`];
      if (location === '') return builtInOf(kind);
      const cached = cache.get(kind);
      if (cached !== undefined && nowMs() < cached.refreshAtMs) return cached.template ?? builtInOf(kind);
      const refreshed = refresh(kind, location);
      return cached?.template ?? (await refreshed).template ?? builtInOf(kind);
    },
  };
}
