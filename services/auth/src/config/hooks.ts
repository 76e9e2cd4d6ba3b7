import { bool, type Setting, type SettingProblem, type SettingsCheck, text } from '@tollgate/kit/settings';
import { hostList, svc } from './builders.ts';
import {
  type HookName,
  hookDefinitions,
  hookNames,
  parseEndpoint,
  parseSecrets,
} from './hook-definitions.ts';

const group = 'Hooks';

type HookSettings = {
  readonly [K in HookName as `hookEnabled:${K}`]: Setting<boolean>;
} & { readonly [K in HookName as `hookUri:${K}` | `hookSecrets:${K}`]: Setting<string> };

/** Switch, endpoint and secrets of each hook, such as `settings['hookUri:SEND_EMAIL']`. */
// Object.fromEntries loses the keys, which match the type.
export const hookSettings = Object.fromEntries<Setting<boolean> | Setting<string>>(
  hookNames.flatMap((name) => {
    const { event } = hookDefinitions[name];
    return [
      [
        `hookEnabled:${name}`,
        bool({ ...svc(`HOOK_${name}_ENABLED`), group, default: false, doc: `Call the hook \`${event}\`.` }),
      ],
      [
        `hookUri:${name}`,
        text({
          ...svc(`HOOK_${name}_URI`),
          group,
          default: '',
          hidden: 'path',
          doc: 'Endpoint: an `https` URL, or `pg-functions://postgres/<schema>/<function>`. `http` is allowed for this machine only.',
        }),
      ],
      [
        `hookSecrets:${name}`,
        text({
          ...svc(`HOOK_${name}_SECRETS`),
          group,
          default: '',
          secret: true,
          doc: 'Secrets that sign requests: `v1,whsec_<base64>`, several separated by `|`. Not used for functions.',
        }),
      ],
    ];
  }),
) as HookSettings;

const eventGroup = 'Event webhooks';

export const eventSettings = {
  eventWebhookUri: text({
    ...svc('EVENT_WEBHOOK_URI'),
    group: eventGroup,
    default: '',
    hidden: 'path',
    doc: 'Endpoint for all events: an `https` URL. Empty: none.',
  }),
  eventWebhooksEnabled: bool({
    ...svc('EVENT_WEBHOOKS_ENABLED'),
    group: eventGroup,
    default: false,
    doc: 'Serve `/admin/webhooks`, and record events for the endpoints that administrators add there. Set it on all replicas.',
  }),
  eventWebhookSecrets: text({
    ...svc('EVENT_WEBHOOK_SECRETS'),
    group: eventGroup,
    default: '',
    secret: true,
    doc: 'Secrets that sign events: `v1,whsec_<base64>`, several separated by `|`.',
  }),
  eventWebhookPrivateHosts: hostList({
    ...svc('EVENT_WEBHOOK_PRIVATE_HOSTS'),
    group: eventGroup,
    default: [],
    doc: 'Hosts that may have a private address and may be called without TLS. Other endpoints must have public addresses.',
  }),
};

type Check = SettingsCheck<typeof hookSettings & typeof eventSettings>;

/** Undefined if the secrets can sign. */
function secretsProblem(
  key: 'eventWebhookSecrets' | `hookSecrets:${HookName}`,
  ...[s, { problem }]: Parameters<Check>
): SettingProblem | undefined {
  const parsed = parseSecrets(s[key]);
  return parsed.ok ? undefined : problem(key, parsed.expected);
}

const uri =
  (name: HookName): Check =>
  (s, { problem }) => {
    const endpoint = parseEndpoint(s[`hookUri:${name}`], []);
    if (!s[`hookEnabled:${name}`] || endpoint.ok) return undefined;
    return problem(`hookUri:${name}`, endpoint.expected);
  };

const secrets =
  (name: HookName): Check =>
  (s, context) => {
    // GoTrue calls endpoints without secrets, unsigned.
    const isSigned = isHttpHook(s, name) && s[`hookSecrets:${name}`] !== '';
    return isSigned ? secretsProblem(`hookSecrets:${name}`, s, context) : undefined;
  };

function isHttpHook(
  s: Pick<Parameters<Check>[0], `hookEnabled:${HookName}` | `hookUri:${HookName}`>,
  name: HookName,
): boolean {
  return s[`hookEnabled:${name}`] && s[`hookUri:${name}`].startsWith('http');
}

/** Hooks whose requests are not signed, so that an endpoint cannot tell who sends them. */
export function unsignedHooks(settings: Parameters<Check>[0]): readonly string[] {
  return hookNames
    .filter((name) => isHttpHook(settings, name) && settings[`hookSecrets:${name}`] === '')
    .map((name) => hookSettings[`hookSecrets:${name}`].env);
}

const eventUri: Check = (s, { problem, variableName }) => {
  if (s.eventWebhookUri === '') return undefined;
  const url = URL.parse(s.eventWebhookUri);
  const isPrivate = s.eventWebhookPrivateHosts.includes(url?.hostname.replace(/^\[|\]$/g, '') ?? '');
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivate);
  if (isAllowed && url?.username === '' && url.password === '') return undefined;
  const hosts = variableName('eventWebhookPrivateHosts');
  const expected = `an https URL without user and password, or an http URL of a host in ${hosts}`;
  return problem('eventWebhookUri', expected);
};

const eventSecrets: Check = (s, context) =>
  s.eventWebhookUri === '' ? undefined : secretsProblem('eventWebhookSecrets', s, context);

export const hookChecks: readonly Check[] = [
  ...[eventUri, eventSecrets],
  ...hookNames.flatMap((name) => [uri(name), secrets(name)]),
];
