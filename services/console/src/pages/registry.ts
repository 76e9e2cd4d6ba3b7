import type { Area } from '../http/routes.ts';
import { apiKeysArea } from './api-keys/routes.ts';
import { auditArea } from './audit/routes.ts';
import { deliveriesArea } from './deliveries/routes.ts';
import { explainArea } from './explain/routes.ts';
import { identityProvidersArea } from './identity-providers/routes.ts';
import { issuersArea } from './issuers/routes.ts';
import { limitsArea } from './limits/routes.ts';
import { oauthClientsArea } from './oauth-clients/routes.ts';
import { organizationsArea } from './organizations/routes.ts';
import { overviewArea } from './overview/routes.ts';
import { policiesArea } from './policies/routes.ts';
import { settingsArea } from './settings/routes.ts';
import { usersArea } from './users/routes.ts';
import { whatIfArea } from './what-if/routes.ts';

/** All parts of the console, in the order of the menu. A new one is one line. */
export const areas: readonly Area[] = [
  overviewArea,
  limitsArea,
  policiesArea,
  explainArea,
  whatIfArea,
  usersArea,
  organizationsArea,
  apiKeysArea,
  oauthClientsArea,
  identityProvidersArea,
  issuersArea,
  auditArea,
  deliveriesArea,
  settingsArea,
];
