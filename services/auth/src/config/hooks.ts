import { bool, type Setting, type SettingsCheck, text } from '@tollgate/kit/settings';
import { type HookName, hookDefinitions, hookNames } from '../hooks/definitions.ts';
import { parseEndpoint, parseSecrets } from '../hooks/endpoint.ts';
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

export const hookChecks: readonly Check[] = hookNames.flatMap((name) => [uri(name), secrets(name)]);
