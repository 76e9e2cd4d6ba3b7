import { settingsSpec } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { IssuerReport } from '../ext-authz/issuer-report.ts';
import type { AddRoutes } from '../http/api.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { AdminContext } from './users.ts';

/** Set by external authorization when the service is composed. */
interface IssuerParts {
  readonly issuerReport: { readonly current: Pick<IssuerReport, 'list'> | undefined };
}

/** `/admin/issuers` */
export const addAdminIssuerRoutes: AddRoutes<AdminContext & IssuerParts> = (api, context) => {
  api.get('/admin/issuers', async (request, reply) => {
    await authenticateAdmin(request, context);
    const report = context.issuerReport.current;
    if (report === undefined)
      throw errors.feature_disabled({
        message: `External authorization is off: set ${settingsSpec.extAuthzEnabled.env}`,
      });
    return reply.send(report.list());
  });
};
