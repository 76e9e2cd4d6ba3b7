import { bool, list, type Setting, type SettingsCheck, text } from '@tollgate/kit/settings';
import {
  type HookName,
  hookDefinitions,
  hookNames,
  parseEndpoint,
  parseSecrets,
} from '../hooks/definitions.ts';
import { svc } from './builders.ts';

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

type Check = SettingsCheck<typeof hookSettings>;

const uri =
  (name: HookName): Check =>
  (s, { variableName, shownValue }) => {
    const endpoint = parseEndpoint(s[`hookUri:${name}`], []);
    if (!s[`hookEnabled:${name}`] || endpoint.ok) return undefined;
    const value = shownValue(`hookUri:${name}`);
    return {
      variable: variableName(`hookUri:${name}`),
      ...(value !== undefined && { value }),
      expected: endpoint.expected,
    };
  };

const secrets =
  (name: HookName): Check =>
  (s, { variableName }) => {
    const parsed = parseSecrets(s[`hookSecrets:${name}`]);
    const isSigned = s[`hookUri:${name}`].startsWith('http');
    if (!s[`hookEnabled:${name}`] || !isSigned || parsed.ok) return undefined;
    const isSet = s[`hookSecrets:${name}`] !== '';
    return {
      variable: variableName(`hookSecrets:${name}`),
      ...(isSet && { value: '(hidden)' }),
      expected: parsed.expected,
    };
  };

const eventGroup = 'Event webhooks';

export const eventSettings = {
  eventWebhookUri: text({
    ...svc('EVENT_WEBHOOK_URI'),
    group: eventGroup,
    default: '',
    doc: 'Endpoint for events of users, sessions, factors and identities: an `https` URL. Empty: no events are recorded.',
  }),
  eventWebhookSecrets: text({
    ...svc('EVENT_WEBHOOK_SECRETS'),
    group: eventGroup,
    default: '',
    secret: true,
    doc: 'Secrets that sign events: `v1,whsec_<base64>`, several separated by `|`.',
  }),
  eventWebhookPrivateHosts: list({
    ...svc('EVENT_WEBHOOK_PRIVATE_HOSTS'),
    group: eventGroup,
    default: [],
    doc: 'Hosts that may have a private address and may be called without TLS. Other endpoints must have public addresses.',
  }),
};

type EventCheck = SettingsCheck<typeof eventSettings>;

const eventUri: EventCheck = (s, { variableName, shownValue }) => {
  if (s.eventWebhookUri === '') return undefined;
  const url = URL.parse(s.eventWebhookUri);
  const isPrivate = s.eventWebhookPrivateHosts.includes(url?.hostname.replace(/^\[|\]$/g, '') ?? '');
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivate);
  if (isAllowed && url?.username === '' && url.password === '') return undefined;
  const value = shownValue('eventWebhookUri');
  return {
    variable: variableName('eventWebhookUri'),
    ...(value !== undefined && { value }),
    expected: `an https URL without user and password, or an http URL of a host in ${variableName('eventWebhookPrivateHosts')}`,
  };
};

const eventSecrets: EventCheck = (s, { variableName }) => {
  const parsed = parseSecrets(s.eventWebhookSecrets);
  if (s.eventWebhookUri === '' || parsed.ok) return undefined;
  const isSet = s.eventWebhookSecrets !== '';
  return {
    variable: variableName('eventWebhookSecrets'),
    ...(isSet && { value: '(hidden)' }),
    expected: parsed.expected,
  };
};

export const eventChecks: readonly EventCheck[] = [eventUri, eventSecrets];

export const hookChecks: readonly Check[] = hookNames.flatMap((name) => [uri(name), secrets(name)]);
