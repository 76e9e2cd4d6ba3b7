import type { Logger } from '@tollgate/kit/logger';
import { Counter, type Registry } from 'prom-client';
import { type MailKind, mailKinds } from '../config/mail.ts';
import type { Settings } from '../config/settings.ts';
import { parseTemplate, type Template, TemplateError } from './templates/template.ts';

const link = (text: string): string => `<p><a href="{{ .ConfirmationURL }}">${text}</a></p>`;
const code = '<p>Or enter this code: <strong>{{ .Token }}</strong></p>';
const notYou = '<p>If that was not you, please tell whoever runs {{ .SiteURL }} at once.</p>';

/** What mails say when no template is set, or it is not to be had. */
export const builtInTemplates: Readonly<Record<MailKind, string>> = {
  INVITE: `<h2>You are invited</h2>
<p>Somebody wants you to have an account at {{ .SiteURL }}.</p>
${link('Accept the invitation')}
${code}
`,
  CONFIRMATION: `<h2>One step left</h2>
<p>You have signed up at {{ .SiteURL }} as {{ .Email }}. Please confirm that this address is yours.</p>
${link('Confirm my address')}
${code}
<p>If you have not signed up, there is nothing to do.</p>
`,
  RECOVERY: `<h2>A new password</h2>
<p>A new password was asked for {{ .Email }} at {{ .SiteURL }}.</p>
${link('Choose a new password')}
${code}
<p>If it was not you who asked, there is nothing to do: your password stays.</p>
`,
  MAGIC_LINK: `<h2>Sign in</h2>
<p>This link signs you in to {{ .SiteURL }}, once.</p>
${link('Sign in')}
${code}
<p>If you have not asked for it, do not pass it on.</p>
`,
  EMAIL_CHANGE: `<h2>A new address</h2>
<p>The address of your account at {{ .SiteURL }} is to change{{ if .Email }} from {{ .Email }}{{ end }} to {{ .NewEmail }}.</p>
${link('Confirm the change')}
${code}
<p>If you do not want that, there is nothing to do.</p>
`,
  REAUTHENTICATION: `<h2>Is it you?</h2>
<p>Enter this code to go on: <strong>{{ .Token }}</strong></p>
`,
  PASSWORD_CHANGED_NOTIFICATION: `<h2>Your password has been changed</h2>
<p>The password of {{ .Email }} has just been changed.</p>
${notYou}
`,
  EMAIL_CHANGED_NOTIFICATION: `<h2>Your address has been changed</h2>
<p>The address of your account has just been changed from {{ .OldEmail }} to {{ .Email }}.</p>
${notYou}
`,
  PHONE_CHANGED_NOTIFICATION: `<h2>Your phone number has been changed</h2>
<p>The phone number of {{ .Email }} has just been changed{{ if .OldPhone }} from {{ .OldPhone }}{{ end }} to {{ .Phone }}.</p>
${notYou}
`,
  IDENTITY_LINKED_NOTIFICATION: `<h2>A new way to sign in</h2>
<p>You can now sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${notYou}
`,
  IDENTITY_UNLINKED_NOTIFICATION: `<h2>A way to sign in is gone</h2>
<p>You can no longer sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${notYou}
`,
  MFA_FACTOR_ENROLLED_NOTIFICATION: `<h2>A second factor has been added</h2>
<p>A factor of the kind {{ .FactorType }} has just been added to the account of {{ .Email }}.</p>
${notYou}
`,
  MFA_FACTOR_UNENROLLED_NOTIFICATION: `<h2>A second factor has been removed</h2>
<p>A factor of the kind {{ .FactorType }} has just been removed from the account of {{ .Email }}.</p>
${notYou}
`,
};

/** `unavailable`: not fetched. `invalid`: not parsed. `render`: does not fit the values of a mail. */
type TemplateFailure = 'unavailable' | 'invalid' | 'render';

/** Counts a failure of a mail template. */
export type CountTemplateFailure = (reason: TemplateFailure) => void;

const reasons: readonly TemplateFailure[] = ['unavailable', 'invalid', 'render'];

/** Counts the failures of mail templates, in each of which another text than the configured one was used. */
export function countTemplateFailures(registry: Registry | undefined): CountTemplateFailure {
  if (registry === undefined) return () => undefined;
  const failures = new Counter({
    name: 'auth_mail_template_failures_total',
    help: 'Mail templates that could not be fetched, parsed or rendered, by reason',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of reasons) failures.inc({ reason }, 0);
  return (reason) => failures.inc({ reason });
}

/** Fetches a text. Rejects when it is unavailable, or its address is not allowed. */
type FetchText = (url: URL) => Promise<string>;

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
