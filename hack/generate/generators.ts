import { ignoredSettings } from '../../services/auth/src/config/gotrue.ts';
import { profileDefaults } from '../../services/auth/src/config/security-profile.ts';
import { settingsSpec as authSettings } from '../../services/auth/src/config/settings.ts';
import { errors as authErrors } from '../../services/auth/src/errors.ts';
import { settingsSpec as consoleSettings } from '../../services/console/src/config/settings.ts';
import { errors as consoleErrors } from '../../services/console/src/errors.ts';
import { settingsSpec as ratelimitSettings } from '../../services/ratelimit/src/config/settings.ts';
import { errors as ratelimitErrors } from '../../services/ratelimit/src/errors.ts';
import { counterApiDocument } from '../../services/ratelimit/src/operator-api/open-api.ts';
import { settingsSpec as xdsSettings } from '../../services/xds/src/config/settings.ts';
import { errors as xdsErrors } from '../../services/xds/src/errors.ts';
import { adminApiDocument } from '../../services/xds/src/operator-api/open-api.ts';
import { renderClientTypes } from './admin-clients.ts';
import { renderAdminScopes } from './admin-scopes.ts';
import { renderCallerAttributes } from './caller-attributes.ts';
import { chartFiles } from './charts/charts.ts';
import { renderCliReadme } from './cli-readme.ts';
import { renderPolicyCrd } from './crd/access-policy.ts';
import { renderCrd } from './crd/definition.ts';
import { renderKnownFieldsPolicy } from './crd/known-fields-policy.ts';
import { renderCrdReadme } from './crd/readme.ts';
import { renderLimitPlots } from './limit-plots.ts';
import { renderPolicyTestsSchema } from './policy-tests-schema.ts';
import {
  formatWithBiome,
  renderClientSdkDocs,
  renderErrorsPage,
  renderIgnoredSettings,
  renderOpenApi,
  renderProtoCode,
  renderSettingsPage,
} from './render.ts';
import { renderRuleFields } from './rule-fields.ts';

/** Something in the repository that is made from something else, by code. */
export interface Generator {
  /** A folder that holds generated files and nothing else (with a trailing slash), or a file. */
  readonly output: string;
  /**
   * The files as they should be, text by path from the root of the repository, all of them at or
   * below `output`.
   */
  render(): Promise<ReadonlyMap<string, string>>;
}

/** All generated parts of the repository; a new one is one entry. */
export const generators: readonly Generator[] = [
  { output: 'proto/generated/', render: renderProtoCode },
  { output: 'client-sdk/docs/api/', render: () => renderClientSdkDocs('client-sdk/docs/api/') },
  manifest('crds/ratelimitconfigs.yaml', renderCrd),
  manifest('crds/accesspolicies.yaml', renderPolicyCrd),
  manifest('crds/known-fields-policy.yaml', renderKnownFieldsPolicy),
  formatted('crds/README.md', () => renderCrdReadme('crds/README.md')),
  formatted('cli/README.md', () => renderCliReadme('cli/README.md')),
  markdownPage('docs/rule-fields.md', renderRuleFields),
  markdownPage('docs/caller-attributes.md', renderCallerAttributes),
  markdownPage('docs/admin-scopes.md', renderAdminScopes),
  markdownPage('docs/settings-ratelimit.md', () =>
    renderSettingsPage('the rate limit service', ratelimitSettings),
  ),
  markdownPage('docs/settings-xds.md', () => renderSettingsPage('the xDS server', xdsSettings)),
  markdownPage('docs/settings-console.md', () => renderSettingsPage('the console', consoleSettings)),
  markdownPage('docs/settings-auth.md', () =>
    renderSettingsPage('the user authentication server', authSettings, {
      end: renderIgnoredSettings(ignoredSettings),
      others: {
        title: 'With `strict`',
        values: Object.fromEntries(
          profileDefaults(authSettings).map(({ setting, value }) => [setting.env, value]),
        ),
      },
    }),
  ),
  {
    output: 'docs/images/limit-algorithms.svg',
    render: async () => new Map([['docs/images/limit-algorithms.svg', renderLimitPlots()]]),
  },
  ...chartFiles.map(({ path, text }) => formatted(path, text)),
  { output: 'packages/admin-clients/src/generated/', render: renderClientTypes },
  formatted('docs/openapi-auth.json', renderOpenApi),
  formatted('docs/openapi-ratelimit.json', async () => JSON.stringify(counterApiDocument())),
  formatted('docs/openapi-xds.json', async () => JSON.stringify(adminApiDocument())),
  formatted('docs/policy-tests.schema.json', async () => renderPolicyTestsSchema()),
  markdownPage('docs/errors.md', () =>
    renderErrorsPage({
      'the rate limit service': ratelimitErrors,
      'the xDS server': xdsErrors,
      'the user authentication server': authErrors,
      'the console': consoleErrors,
    }),
  ),
];

function markdownPage(output: string, text: () => string): Generator {
  return formatted(output, async () => text());
}

function formatted(output: string, text: () => Promise<string>): Generator {
  return { output, render: async () => new Map([[output, await formatWithBiome(output, await text())]]) };
}

function manifest(output: string, render: () => string): Generator {
  return { output, render: async () => new Map([[output, render()]]) };
}
