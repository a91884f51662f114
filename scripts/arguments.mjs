/** What was given behind `npm run NAME --`. pnpm hands the `--` itself on, npm keeps it. */
export const given = process.argv.slice(process.argv[2] === '--' ? 3 : 2)
