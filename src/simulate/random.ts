export { type Random, seededRandom } from '../core/seeded-random.js'
