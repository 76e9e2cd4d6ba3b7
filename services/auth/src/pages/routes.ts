import type { AddRoutes } from '../http/api.ts';
import { addLogoRoute } from '../http/page-logo.ts';
import { addStyleRoute } from '../http/page-style.ts';
import { accountPage, emailForm, profileForm, signOutForm } from './account.ts';
import { accountEndForm, accountsPage, accountUseForm } from './accounts.ts';
import { apiKeyPage, apiKeysPage, revokeApiKeyForm } from './api-keys.ts';
import { applicationsPage, revokeApplicationForm } from './applications.ts';
import { codeForm, codePage } from './code.ts';
import { confirmPage } from './confirm.ts';
import { consentPage } from './consent.ts';
import type { PagesContext } from './context.ts';
import { dataPage, deletePage, exportForm } from './data.ts';
import { deviceDonePage, devicePage } from './device.ts';
import { confirmFactorPage, enrollPage, removeFactorPage } from './factors.ts';
import { invitationPage } from './invitation.ts';
import { addLinkingRoute } from './linking.ts';
import { logoutPage } from './logout.ts';
import {
  invitationRevokeForm,
  inviteForm,
  memberRemoveForm,
  memberRoleForm,
  organizationKeyRevokeForm,
  organizationPage,
} from './organization.ts';
import {
  createOrganizationForm,
  joinOrganizationForm,
  leaveOrganizationForm,
  organizationsPage,
  switchOrganizationForm,
} from './organizations.ts';
import { addPage, type PageDefinition } from './page.ts';
import { passkeyForm, passkeyPage } from './passkey.ts';
import { addPasskeyPage, createPasskeyForm, passkeyNamePage, removePasskeyPage } from './passkeys.ts';
import { phoneCodePage, phoneForm } from './phone.ts';
import { continuePage, providerPage } from './providers.ts';
import { passwordPage, recoveryPage } from './recovery.ts';
import { recoveryCodesPage } from './recovery-codes.ts';
import { resendPage } from './resend.ts';
import { returnPage } from './return.ts';
import { secondFactorPage } from './second-factor.ts';
import { removeIdentityForm, securityPage } from './security.ts';
import { endSessionForm, sessionsPage } from './sessions.ts';
import { signInPage } from './sign-in.ts';
import { signUpPage } from './sign-up.ts';

/** Enables pages of an optional part together with its page of the account area. */
function enabledWith(
  { isEnabled }: PageDefinition,
  definitions: readonly PageDefinition[],
): readonly PageDefinition[] {
  return definitions.map((page) => ({ ...page, isEnabled }));
}

/** All pages, whatever the settings enable. */
export const allPages: readonly PageDefinition[] = [
  signInPage,
  accountsPage,
  accountUseForm,
  accountEndForm,
  codePage,
  codeForm,
  passkeyPage,
  passkeyForm,
  signUpPage,
  providerPage,
  continuePage,
  secondFactorPage,
  recoveryPage,
  passwordPage,
  resendPage,
  returnPage,
  signOutForm,

  accountPage,
  profileForm,
  emailForm,
  phoneForm,
  phoneCodePage,
  confirmPage,

  dataPage,
  exportForm,
  deletePage,

  securityPage,
  removeIdentityForm,
  addPasskeyPage,
  createPasskeyForm,
  passkeyNamePage,
  removePasskeyPage,
  enrollPage,
  confirmFactorPage,
  removeFactorPage,
  recoveryCodesPage,

  sessionsPage,
  endSessionForm,

  apiKeysPage,
  revokeApiKeyForm,
  apiKeyPage,

  applicationsPage,
  revokeApplicationForm,
  ...enabledWith(applicationsPage, [consentPage, devicePage, deviceDonePage, logoutPage]),

  organizationsPage,
  switchOrganizationForm,
  joinOrganizationForm,
  leaveOrganizationForm,
  createOrganizationForm,
  ...enabledWith(organizationsPage, [
    invitationPage,
    organizationPage,
    memberRoleForm,
    memberRemoveForm,
    inviteForm,
    invitationRevokeForm,
    organizationKeyRevokeForm,
  ]),
];

/** `/pages/…`: the pages for users. */
export const addPageRoutes: AddRoutes<PagesContext> = (api, context) => {
  addStyleRoute(api, context);
  addLogoRoute(api, context);
  addLinkingRoute(api, context);
  const { settings } = context;
  if (!settings.pagesEnabled) return;
  api.decorateRequest('visit', undefined);
  for (const page of allPages) if (page.isEnabled?.(settings) ?? true) addPage(api, context, page);
};
