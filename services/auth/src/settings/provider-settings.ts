import { bool, type Setting, text } from '@tollgate/kit/settings';
import { type ProviderName, providerNames } from '../domain/provider-names.ts';
import { svc } from './variable-names.ts';
import { type SettingWithoutEffect, withoutEffect } from './without-effect.ts';

const group = 'External providers';

type ProviderSettings = {
  readonly [P in ProviderName as `externalEnabled:${P}`]: SettingWithoutEffect<boolean>;
} & {
  readonly [P in ProviderName as `external${'ClientId' | 'Secret' | 'RedirectUri' | 'Url'}:${P}`]: SettingWithoutEffect<string>;
};

/** Five settings per external provider: `settings['externalClientId:github']`. */
// Object.fromEntries forgets which key has which value; the keys are made from the names as the type says.
export const providerSettings = Object.fromEntries<Setting<string> | Setting<boolean>>(
  providerNames.flatMap((name) => {
    const of = (part: string) => ({ ...svc(`EXTERNAL_${name.toUpperCase()}_${part}`), group });
    return [
      [
        `externalEnabled:${name}`,
        withoutEffect(bool({ ...of('ENABLED'), default: false, doc: 'Sign-in with it.' })),
      ],
      [
        `externalClientId:${name}`,
        withoutEffect(text({ ...of('CLIENT_ID'), default: '', doc: 'Client id there.' })),
      ],
      [
        `externalSecret:${name}`,
        withoutEffect(text({ ...of('SECRET'), default: '', secret: true, doc: 'Client secret.' })),
      ],
      [
        `externalRedirectUri:${name}`,
        withoutEffect(
          text({ ...of('REDIRECT_URI'), default: '', doc: 'URL of `/callback` as registered there.' }),
        ),
      ],
      [
        `externalUrl:${name}`,
        withoutEffect(text({ ...of('URL'), default: '', doc: 'Base URL of its endpoints.' })),
      ],
    ] as const;
  }),
) as ProviderSettings;
