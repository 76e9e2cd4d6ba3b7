import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { providerNames } from '../sign-in/providers.ts';
import type { AddRoutes } from './api.ts';

/** Can requests be served? */
type CheckReady = () => Promise<boolean>;

/** Whoever asks gives up soon: Kubernetes after a second unless told otherwise. */
const timeoutMs = 900;

/**
 * Creates {@link CheckReady}: queries the database. Concurrent checks share one query, however long
 * it takes. The first failure after a success is logged.
 */
function createCheckReady({ store, logger }: Pick<Context, 'store' | 'logger'>): CheckReady {
  let asked: Promise<boolean> | undefined;
  let isFailing = false;

  async function ask(): Promise<boolean> {
    try {
      await store.ping();
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) logger.warn({ err: error }, 'not ready');
      isFailing = true;
      return false;
    } finally {
      asked = undefined;
    }
  }

  return async () => {
    asked ??= ask();
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), timeoutMs);
    try {
      return await Promise.race([asked, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** `/health`: is the process there; `/ready`: can it work; `/settings`: what clients may offer their users. */
export const addStatusRoutes: AddRoutes = (api, { settings, store, logger }) => {
  const isReady = createCheckReady({ store, logger });
  const health = {
    version: `v${packageJson.version}`,
    name: 'GoTrue',
    description: 'GoTrue is a user registration and authentication API',
  };
  const shown = publicSettings(settings);
  api.get('/health', (_request, reply) => reply.send(health));
  api.get('/ready', async (_request, reply) => {
    const ready = await isReady();
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'the database cannot be used' });
  });
  api.get('/settings', (_request, reply) => reply.send(shown));
};

function publicSettings(s: Settings) {
  return {
    external: {
      // Whatever the settings say of them: what is not served must not be offered.
      ...Object.fromEntries(providerNames.map((name) => [name, false])),
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
    passkeys_enabled: false,
  };
}
