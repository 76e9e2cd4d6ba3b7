import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { providerNames } from '../providers/registry.ts';
import type { AddRoutes } from './api.ts';

/** Less than the default probe timeout of Kubernetes, which is a second. */
const timeoutMs = 900;

type Readiness =
  | { readonly isReady: false }
  /** Lists are slow without these indexes, and the server works. */
  | { readonly isReady: true; readonly missingIndexes: readonly string[] };

/**
 * Checks readiness by querying the database. Concurrent checks share one query, however long it
 * takes. The first failure after a success is logged.
 */
class ReadinessCheck {
  readonly #context: Pick<Context, 'store' | 'logger'>;
  #pending: Promise<Readiness> | undefined;
  #isFailing = false;

  constructor(context: Pick<Context, 'store' | 'logger'>) {
    this.#context = context;
  }

  async check(): Promise<Readiness> {
    this.#pending ??= this.#query();
    const timeout = Promise.withResolvers<Readiness>();
    const timer = setTimeout(() => timeout.resolve({ isReady: false }), timeoutMs);
    try {
      return await Promise.race([this.#pending, timeout.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #query(): Promise<Readiness> {
    const { store, logger } = this.#context;
    try {
      const [missingIndexes] = await Promise.all([store.missingIndexes(), store.ping()]);
      this.#isFailing = false;
      return { isReady: true, missingIndexes };
    } catch (error) {
      if (!this.#isFailing) logger.warn({ err: error }, 'not ready');
      this.#isFailing = true;
      return { isReady: false };
    } finally {
      this.#pending = undefined;
    }
  }
}

/** `/health` (liveness), `/ready` (readiness) and `/settings` (what clients may offer). */
export const addStatusRoutes: AddRoutes = (api, { settings, store, logger }) => {
  const readiness = new ReadinessCheck({ store, logger });
  const health = {
    version: `v${packageJson.version}`,
    name: 'GoTrue',
    description: 'GoTrue is a user registration and authentication API',
  };
  const shown = publicSettings(settings);
  api.get('/health', (_request, reply) => reply.send(health));
  api.get('/ready', async (_request, reply) => {
    const state = await readiness.check();
    if (!state.isReady) return reply.code(503).send({ status: 'database unavailable' });
    const { missingIndexes } = state;
    return reply.send({
      status: 'ready',
      ...(missingIndexes.length > 0 && { missing_indexes: missingIndexes }),
    });
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
