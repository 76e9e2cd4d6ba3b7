import type { Logger } from '@tollgate/kit/logger';
import type { MailKind } from '../settings/mail-text-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { builtInTemplates } from './built-in-templates.ts';
import { parseTemplate, type Template } from './template.ts';

/** Gets the text behind a URL. Rejects when there is none, or it may not be asked. */
export type FetchText = (url: URL) => Promise<string>;

/** The bodies of mails. */
export interface MailTemplates {
  /** The body of a kind. Never rejects: what is not to be had is replaced by what was there before, or by the built-in text. */
  bodyOf(kind: MailKind): Promise<Template>;
  builtIn(kind: MailKind): Template;
}

/** A template that was fetched lives so long. */
const freshMs = 10 * 60_000;
/** After a failure it is asked for again no sooner. */
const retryMs = 10_000;

interface Cached {
  readonly template: Template | undefined;
  readonly askAgainAtMs: number;
}

/** Creates {@link MailTemplates}: fetched when first needed and kept; fetched anew behind the back of those who use the old one. */
export function createMailTemplates(deps: {
  readonly settings: Pick<Settings, 'siteUrl' | `mailTemplate:${MailKind}`>;
  readonly fetchText: FetchText;
  readonly logger: Logger;
  readonly nowMs: () => number;
}): MailTemplates {
  const { settings, fetchText, logger, nowMs } = deps;
  const builtIn = new Map<MailKind, Template>();
  const cache = new Map<MailKind, Cached>();
  const fetching = new Map<MailKind, Promise<Template | undefined>>();

  function builtInOf(kind: MailKind): Template {
    const known = builtIn.get(kind) ?? parseTemplate(builtInTemplates[kind], 'html');
    builtIn.set(kind, known);
    return known;
  }

  async function fetchTemplate(kind: MailKind, location: string): Promise<Template | undefined> {
    const before = cache.get(kind)?.template;
    try {
      const template = parseTemplate(await fetchText(new URL(location, settings.siteUrl)), 'html');
      cache.set(kind, { template, askAgainAtMs: nowMs() + freshMs });
      return template;
    } catch (error) {
      const instead = before === undefined ? 'the built-in one' : 'the previous one';
      logger.warn({ err: error, kind, instead }, 'mail template not to be had');
      cache.set(kind, { template: before, askAgainAtMs: nowMs() + retryMs });
      return before;
    } finally {
      fetching.delete(kind);
    }
  }

  /** Of those who come together one asks. */
  function fetchOnce(kind: MailKind, location: string): Promise<Template | undefined> {
    const running = fetching.get(kind) ?? fetchTemplate(kind, location);
    if (!fetching.has(kind)) fetching.set(kind, running);
    return running;
  }

  return {
    builtIn: builtInOf,
    async bodyOf(kind) {
      const location = settings[`mailTemplate:${kind}`];
      if (location === '') return builtInOf(kind);
      const cached = cache.get(kind);
      if (cached !== undefined && nowMs() < cached.askAgainAtMs) return cached.template ?? builtInOf(kind);
      const fetched = fetchOnce(kind, location);
      return cached?.template ?? (await fetched) ?? builtInOf(kind);
    },
  };
}
