import { Type } from 'typebox';
import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { AddRoutes } from '../http/api.ts';
import { providerNames } from '../identity-providers/registry.ts';
import type { Context } from './context.ts';

/** Less than the default probe timeout of Kubernetes, which is a second. */
const timeoutMs = 900;

/** However many clients ask, the database gets one write in this time. */
const writeEveryMs = 5_000;

type Readiness =
  | { readonly status: 'database unavailable' | 'database read-only' }
  /** Lists are slow without these indexes, and the server works. */
  | { readonly status: 'ready'; readonly missingIndexes: readonly string[] };

type StatusContext = Pick<Context, 'settings' | 'store' | 'logger' | 'nowMs'>;

/**
 * Checks readiness by querying the database. Concurrent checks share one query, however long it
 * takes. The first failure after a success is logged.
 */
class ReadinessCheck {
  readonly #context: StatusContext;
  #lastWrite = { atMs: Number.NEGATIVE_INFINITY, isAccepted: true };
  #pending: Promise<Readiness> | undefined;
  #isFailing = false;

  constructor(context: StatusContext) {
    this.#context = context;
  }

  async check(): Promise<Readiness> {
    this.#pending ??= this.#query();
    const timeout = Promise.withResolvers<Readiness>();
    const timer = setTimeout(() => timeout.resolve({ status: 'database unavailable' }), timeoutMs);
    try {
      return await Promise.race([this.#pending, timeout.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #query(): Promise<Readiness> {
    const { store, logger } = this.#context;
    let failed: Readiness = { status: 'database unavailable' };
    try {
      const [missingIndexes] = await Promise.all([store.missingIndexes(), store.ping()]);
      failed = { status: 'database read-only' };
      if (!(await this.#canWrite())) return failed;
      this.#isFailing = false;
      return { status: 'ready', missingIndexes };
    } catch (error) {
      if (!this.#isFailing) logger.warn({ err: error }, 'not ready');
      this.#isFailing = true;
      return failed;
    } finally {
      this.#pending = undefined;
    }
  }

  /** The last result if it is recent. */
  async #canWrite(): Promise<boolean> {
    const { store, nowMs } = this.#context;
    const atMs = nowMs();
    const ageMs = atMs - this.#lastWrite.atMs;
    if (ageMs >= 0 && ageMs < writeEveryMs) return this.#lastWrite.isAccepted;
    this.#lastWrite = { atMs, isAccepted: false };
    await store.limits.probeWrite(atMs);
    this.#lastWrite = { atMs, isAccepted: true };
    return true;
  }
}

const readyQuery = Type.Object({
  writes: Type.Optional(
    Type.String({
      description: '`false`: also ready if the database is read-only, which is enough for ext_authz',
    }),
  ),
});

/** `/health` (liveness), `/ready` (readiness) and `/settings` (what clients may offer). */
export const addStatusRoutes: AddRoutes<StatusContext> = (api, context) => {
  const readiness = new ReadinessCheck(context);
  const health = {
    version: `v${packageJson.version}`,
    name: 'GoTrue',
    description: 'GoTrue is a user registration and authentication API',
  };
  const shown = publicSettings(context.settings);
  api.get('/health', (_request, reply) => reply.send(health));
  api.get('/ready', { schema: { querystring: readyQuery } }, async (request, reply) => {
    const state = await readiness.check();
    const { status } = state;
    const isReady =
      status === 'ready' || (status === 'database read-only' && request.query.writes === 'false');
    const missing = status === 'ready' ? state.missingIndexes : [];
    return reply
      .code(isReady ? 200 : 503)
      .send({ status, ...(missing.length > 0 && { missing_indexes: missing }) });
  });
  api.get('/settings', (_request, reply) => reply.send(shown));
};

function publicSettings(s: Settings) {
  return {
    external: {
      ...Object.fromEntries(providerNames.map((name) => [name, s[`externalEnabled:${name}`]])),
      email: s.externalEmailEnabled,
      phone: s.externalPhoneEnabled,
      anonymous_users: s.externalAnonymousUsersEnabled,
    },
    disable_signup: s.disableSignup,
    autoconfirm: s.mailerAutoconfirm,
    mailer_autoconfirm: s.mailerAutoconfirm,
    phone_autoconfirm: s.smsAutoconfirm,
    sms_provider: s.smsProvider,
    saml_enabled: false,
    saml_private_key_next_configured: false,
    passkeys_enabled: s.passkeyEnabled,
  };
}
