import packageJson from '../../../../package.json' with { type: 'json' };
import { providerNames } from '../../../domain/provider-names.ts';
import type { Settings } from '../../../settings/settings.ts';
import { createCheckReady } from '../../../use-cases/status/check-ready.ts';
import type { AddRoutes } from '../api.ts';

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
