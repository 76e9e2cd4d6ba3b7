import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { type MailKind, mailKinds } from '../config/mail.ts';
import type { Settings } from '../config/settings.ts';
import { fetchText } from '../http/fetch.ts';
import type { Metrics } from '../metrics.ts';
import { TemplateError } from './templates/syntax.ts';
import { parseTemplate, type Template } from './templates/template.ts';

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
  readonly settings: Pick<Settings, 'siteUrl' | 'mailerTemplatePrivateHosts' | `mailTemplate:${MailKind}`>;
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
  readonly #builtIn = new Map<MailKind, Template>();
  readonly #cache = new Map<MailKind, CachedTemplate>();
  readonly #fetching = new Map<MailKind, Promise<CachedTemplate>>();

  constructor(options: MailTemplatesOptions) {
    const privateHosts = options.settings.mailerTemplatePrivateHosts;
    const limits = { privateHosts, timeoutMs: fetchTimeoutMs, maxBytes: maxTemplateBytes };
    this.#options = options;
    this.#fetch = options.fetch ?? ((url) => fetchText(url, limits));
  }

  /**
   * Fetches all templates. Unavailable ones are fetched again when they are needed.
   *
   * @throws Error naming each template that cannot be parsed, with its line.
   */
  async start(): Promise<void> {
    const attempts = mailKinds.map(async (kind) => {
      const location = this.#options.settings[`mailTemplate:${kind}`];
      if (location === '') return [];
      const { error } = await this.#refresh(kind, location);
      return error instanceof TemplateError ? [`${kind} (${location}): ${error.message}`] : [];
    });
    const problems = (await Promise.all(attempts)).flat();
    if (problems.length > 0) throw new Error(`invalid mail templates: ${problems.join('; ')}`);
  }

  /** Never rejects. */
  async get(kind: MailKind): Promise<Template> {
    const { settings, nowMs } = this.#options;
    const location = settings[`mailTemplate:${kind}`];
    if (location === '') return this.getBuiltIn(kind);
    const cached = this.#cache.get(kind);
    if (cached !== undefined && nowMs() < cached.refreshAtMs) return cached.template ?? this.getBuiltIn(kind);
    const refreshed = this.#refresh(kind, location);
    return cached?.template ?? (await refreshed).template ?? this.getBuiltIn(kind);
  }

  getBuiltIn(kind: MailKind): Template {
    const template = this.#builtIn.get(kind) ?? parseTemplate(builtInTemplates[kind], 'html');
    this.#builtIn.set(kind, template);
    return template;
  }

  /** Concurrent callers share one fetch. */
  async #refresh(kind: MailKind, location: string): Promise<CachedTemplate> {
    const running = this.#fetching.get(kind);
    if (running !== undefined) return running;
    const fetching = this.#fetchTemplate(kind, location);
    this.#fetching.set(kind, fetching);
    const cached = await fetching;
    this.#cache.set(kind, cached);
    this.#fetching.delete(kind);
    return cached;
  }

  async #fetchTemplate(kind: MailKind, location: string): Promise<CachedTemplate> {
    const { metrics, logger, nowMs } = this.#options;
    const previous = this.#cache.get(kind)?.template;
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

const link = (text: string): string => `<p><a href="{{ .ConfirmationURL }}">${text}</a></p>`;
const code = '<p>Or enter this code: <strong>{{ .Token }}</strong></p>';
const ignore = "<p>If you didn't request this, you can ignore this email.</p>";
const report = `<p>If you didn't make this change, contact support for {{ .SiteURL }} immediately.</p>`;

/** Templates used when none is configured, or while the configured one is unavailable. */
export const builtInTemplates: Readonly<Record<MailKind, string>> = {
  INVITE: `<h2>You have been invited</h2>
<p>You have been invited to create an account on {{ .SiteURL }}.</p>
${link('Accept the invitation')}
${code}
`,
  CONFIRMATION: `<h2>Confirm your email address</h2>
<p>You signed up on {{ .SiteURL }} with the address {{ .Email }}.</p>
${link('Confirm email address')}
${code}
<p>If you didn't sign up, you can ignore this email.</p>
`,
  RECOVERY: `<h2>Reset your password</h2>
<p>We received a request to reset the password for {{ .Email }} on {{ .SiteURL }}.</p>
${link('Reset password')}
${code}
<p>If you didn't request this, you can ignore this email. Your password won't change.</p>
`,
  MAGIC_LINK: `<h2>Sign in</h2>
<p>Use this link to sign in to {{ .SiteURL }}. It can be used once.</p>
${link('Sign in')}
${code}
<p>If you didn't request this, you can ignore this email. Don't share the link or the code with anyone.</p>
`,
  EMAIL_CHANGE: `<h2>Confirm your new email address</h2>
<p>We received a request to change the email address of your account on {{ .SiteURL }}{{ if .Email }} from {{ .Email }}{{ end }} to {{ .NewEmail }}.</p>
${link('Confirm the change')}
${code}
${ignore}
`,
  REAUTHENTICATION: `<h2>Confirm that it's you</h2>
<p>Enter this code to continue: <strong>{{ .Token }}</strong></p>
${ignore}
`,
  PASSWORD_CHANGED_NOTIFICATION: `<h2>Your password has been changed</h2>
<p>The password for {{ .Email }} was changed.</p>
${report}
`,
  EMAIL_CHANGED_NOTIFICATION: `<h2>Your email address has been changed</h2>
<p>The email address of your account was changed from {{ .OldEmail }} to {{ .Email }}.</p>
${report}
`,
  PHONE_CHANGED_NOTIFICATION: `<h2>Your phone number has been changed</h2>
<p>The phone number for {{ .Email }} was changed{{ if .OldPhone }} from {{ .OldPhone }}{{ end }} to {{ .Phone }}.</p>
${report}
`,
  IDENTITY_LINKED_NOTIFICATION: `<h2>A new sign-in method has been added</h2>
<p>You can now sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${report}
`,
  IDENTITY_UNLINKED_NOTIFICATION: `<h2>A sign-in method has been removed</h2>
<p>You can no longer sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${report}
`,
  MFA_FACTOR_ENROLLED_NOTIFICATION: `<h2>A second factor has been added</h2>
<p>A second factor ({{ .FactorType }}) was added to the account of {{ .Email }}.</p>
${report}
`,
  MFA_FACTOR_UNENROLLED_NOTIFICATION: `<h2>A second factor has been removed</h2>
<p>A second factor ({{ .FactorType }}) was removed from the account of {{ .Email }}.</p>
${report}
`,
};
