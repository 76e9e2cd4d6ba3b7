import { execFileSync } from 'node:child_process';
import { findBinaries } from '@tollgate/embedded-postgres/binaries';
import type { Company } from '../report/format-facts.ts';

/** What shares the machine with the user authentication server. */
export async function postgresCompany(): Promise<Company> {
  const { postgres } = await findBinaries();
  const text = execFileSync(postgres, ['--version'], { encoding: 'utf8' });
  const version = /\d+(?:\.\d+)+/.exec(text)?.[0] ?? 'unknown';
  return { sharedBy: 'the service, PostgreSQL and the load', programs: [`PostgreSQL ${version}`] };
}
